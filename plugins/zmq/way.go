// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/zmq/internal/intake"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// way is how a message leaves that is published under a name.
type way uint8

// The ways.
const (
	wayPeers   way = iota // to peers, over a PUSH or PUB socket
	wayOwn                // to the own subscription, without leaving the process
	wayReply              // to the peer that asked, over a ROUTER socket
	wayRequest            // as a request alone, over a DEALER socket
)

// replyForm is what a reply destination looks like, for people.
const replyForm = intake.ReplyScheme + "<identity in hexadecimal digits>"

// refusal says why nothing can be published under a name, and what to do.
type refusal struct{ message, fix string }

// way returns how a message leaves that is published under a name, or why none
// can. reader is the name of the endpoint's subscription, "" where it has none.
func (e *endpoint) way(reader, name string) (way, *refusal) {
	if r := badName(name); r != nil {
		return 0, r
	}
	switch p := e.settings.Pattern; {
	case p == settings.PatternRPC && reader != "":
		return wayReply, e.badReply(reader, name)
	case p == settings.PatternRPC:
		return wayRequest, nil
	case reader == "":
		return wayPeers, nil
	case e.bind == nil:
		return 0, &refusal{
			fmt.Sprintf("subscription %s %s to read, and to send %s it would need a %s socket", shown(reader), e.does(), shown(name), e.sender()),
			"publish it through another endpoint",
		}
	case p == settings.PatternQueue && name != reader:
		return 0, &refusal{
			fmt.Sprintf("subscription %s %s and would get it itself: only %[1]s can be published here, not %[3]s", shown(reader), e.does(), shown(name)),
			"publish it through another endpoint",
		}
	case !strings.HasPrefix(name, reader):
		return 0, &refusal{
			fmt.Sprintf("subscription %s %s, and only what begins with %[1]s can be published here: %[3]s is outside that prefix",
				shown(reader), e.does(), shown(name)),
			"publish it through another endpoint",
		}
	}
	return wayOwn, nil
}

// sender is the socket that sends what the endpoint's pattern is about.
func (e *endpoint) sender() string {
	if e.settings.Pattern == settings.PatternFanOut {
		return "PUB"
	}
	return "PUSH"
}

// badReply says why a name is no reply destination, nil where it is one.
func (e *endpoint) badReply(reader, name string) *refusal {
	const fix = "give the reply-to header of the request as it came; to send a request use Request, on an endpoint without a subscription"
	digits, ok := strings.CutPrefix(name, intake.ReplyScheme)
	if !ok {
		return &refusal{
			fmt.Sprintf("subscription %s %s to answer requests, and %s is no reply destination: those are %s",
				shown(reader), e.does(), shown(name), replyForm), fix,
		}
	}
	if _, ok := identity(digits); !ok {
		return &refusal{
			fmt.Sprintf("%s names no peer: behind %s stand 2 to %d hexadecimal digits, an even number of them", shown(name), intake.ReplyScheme, 2*zmtp.MaxIdentity), fix,
		}
	}
	return nil
}

// identity reads the digits of a reply destination.
func identity(digits string) ([]byte, bool) {
	if digits == "" || len(digits) > 2*zmtp.MaxIdentity {
		return nil, false
	}
	id, err := hex.DecodeString(digits)
	return id, err == nil
}

// badName says why a name cannot be that of a message, nil where it can. What a
// host sends is UTF-8.
func badName(name string) *refusal {
	switch {
	case name == "":
		return &refusal{"it has no name", "give it one"}
	case len(name) > maxName:
		return &refusal{fmt.Sprintf("the name %s has %d bytes", shown(name), len(name)), fmt.Sprintf("use at most %d bytes", maxName)}
	}
	return nil
}

// publishing is what a destination can do that is reached so.
func (e *endpoint) publishing(w way) core.Publishing {
	p := core.Publishing{
		Confirms: core.ConfirmHandedOver, Headers: core.HeadersNativeText, Repeats: true,
		MaxBytes: e.settings.MaxMessage, MaxHeaders: MaxHeaders,
	}
	switch {
	case w == wayOwn:
		p.Retains = core.RetainProcess
	case w == wayRequest:
		p.MaxBytes = min(p.MaxBytes, MaxMessage-replyRoom)
		p.MaxHeaders -= replyHeaders
	case w == wayReply, e.settings.Pattern == settings.PatternFanOut:
		p.Confirms = core.ConfirmQueued
	}
	return p
}

// What a request has beyond what it is given: its correlation id, and at its
// responder where the reply goes.
const (
	replyRoom    = 1 << 10
	replyHeaders = 2
)
