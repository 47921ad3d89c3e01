// SPDX-License-Identifier: Apache-2.0

// Package message turns messages into the PUBLISH packets of the reference (3.4)
// and back: content-type, reply-to and correlation-id are properties of their own,
// each other header is a user property.
package message

import (
	"fmt"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/topic"
)

// MaxHeaders is how many headers one message may hold. A user property takes five
// bytes and more on the wire and forty and more in memory; without a limit a large
// packet of user properties alone would take all of it.
const MaxHeaders = 1 << 16

// The headers of our own that deliveries have, with the value "true": they tell
// about one delivery, so that a publish leaves them out.
const (
	Retained    = "mqtt-retained"    // the server kept it: it came before the subscription did
	Redelivered = "mqtt-redelivered" // it was sent before, the DUP flag
)

// The headers that are properties of their own.
const (
	contentType   = "content-type"
	replyTo       = "reply-to"
	correlationID = "correlation-id"
)

// kind is what becomes of a header.
type kind byte

const (
	kindUser kind = iota
	kindContentType
	kindReplyTo
	kindCorrelationID
	kindOwn
	kinds // how many there are
)

// kindOf is the kind of a header, whatever the case of its name.
func kindOf[T ~string | ~[]byte](name T) kind {
	switch len(name) {
	case len(contentType):
		if same(name, contentType) {
			return kindContentType
		}
	case len(replyTo):
		if same(name, replyTo) {
			return kindReplyTo
		}
	case len(correlationID):
		if same(name, correlationID) {
			return kindCorrelationID
		}
	case len(Retained):
		if same(name, Retained) {
			return kindOwn
		}
	case len(Redelivered):
		if same(name, Redelivered) {
			return kindOwn
		}
	}
	return kindUser
}

// same reports whether a name is one of ours, which is as long and in lower case.
func same[T ~string | ~[]byte](name T, ours string) bool {
	for i := range len(ours) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != ours[i] {
			return false
		}
	}
	return true
}

// Check says why a message cannot be published, nil = it can. Names and values of
// headers are text without control characters and non-characters, which servers
// end the connection for; reply-to is a topic; correlation-id is of any bytes. A
// header that is a property of its own stands there once (D25). The fault names
// the header and the destination.
func Check(m *core.Message) *core.Fault { return check(m, true) }

// CheckCopy is Check for a copy of what the same server has delivered: it takes
// control characters, non-characters and a reply-to that is no topic, for so does
// that server.
func CheckCopy(m *core.Message) *core.Fault { return check(m, false) }

func check(m *core.Message, strict bool) *core.Fault {
	checkTopic := topic.CheckTopic
	if !strict {
		checkTopic = topic.CheckDelivered
	}
	if d := checkTopic(m.Name); d != nil {
		return refusal(core.FaultInvalid, m, d.Message, d.Fix)
	}
	if len(m.Headers) > MaxHeaders {
		return refusal(core.FaultTooLarge, m, fmt.Sprintf("%d headers, the limit is %d", len(m.Headers), MaxHeaders), "leave headers out")
	}
	var seen [kinds]bool
	for i := range m.Headers {
		h := &m.Headers[i]
		k := kindOf(h.Name)
		if k == kindOwn {
			continue
		}
		if f := checkHeader(m, h, k, strict); f != nil {
			return f
		}
		if k != kindUser && seen[k] {
			return refusal(core.FaultInvalid, m, fmt.Sprintf("header %q is there twice, and MQTT has it once", h.Name), "leave one of them out")
		}
		seen[k] = true
	}
	return nil
}

// checkHeader says why a header cannot be a property.
func checkHeader(m *core.Message, h *core.Header, k kind, strict bool) *core.Fault {
	refuse := func(code core.FaultCode, reason, fix string) *core.Fault {
		return refusal(code, m, fmt.Sprintf("header %.80q: %s", h.Name, reason), fix)
	}
	if n := max(len(h.Name), len(h.Value)); n > packet.MaxString {
		return refuse(core.FaultTooLarge, fmt.Sprintf("%d bytes, the limit is %d", n, packet.MaxString), "shorten it")
	}
	const encode = "leave the header out or encode it as text, in base64 for instance"
	if reason := unfit(h.Name, strict); reason != "" {
		return refuse(core.FaultInvalid, "the name "+reason, encode)
	}
	if k == kindCorrelationID {
		return nil
	}
	if reason := unfit(h.Value, strict); reason != "" {
		return refuse(core.FaultInvalid, "the value "+reason, encode)
	}
	if strict && k == kindReplyTo && !replyTopic(h.Value) {
		return refuse(core.FaultInvalid, fmt.Sprintf("%.80q is no topic", h.Value), "name one topic without wildcards") // [MQTT-3.3.2-14]
	}
	return nil
}

// unfit says why a text cannot be a string of MQTT, "" = it can.
func unfit[T ~string | ~[]byte](s T, strict bool) string {
	if printable(s) {
		return ""
	}
	if !readable([]byte(s)) {
		return "is not UTF-8, or has a null character"
	}
	if reason := topic.Unfit(s); strict && reason != "" {
		return "has " + reason
	}
	return ""
}

func refusal(code core.FaultCode, m *core.Message, reason, fix string) *core.Fault {
	f := fault.Refusal(code, "%s: %s", fault.PublishTo(m.Name), reason)
	f.Diagnostics = []core.Diagnostic{{Fix: fix}}
	return f
}
