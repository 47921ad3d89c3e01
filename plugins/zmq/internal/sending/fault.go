// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
)

// tell answers a ticket.
func tell(t outq.Ticket, r pluginapi.Receipt) {
	if t.Done != nil {
		t.Done(t.I, r)
	}
}

// refuse answers a ticket whose message was not sent.
func refuse(t outq.Ticket, why *core.Fault) { tell(t, pluginapi.Refused(why)) }

// noPeer is the fault of a message that nobody was there for.
func noPeer(what, address, name string, wait time.Duration) *core.Fault {
	return &core.Fault{
		Code: core.FaultUnavailable, Transient: true,
		Message: fmt.Sprintf("publish to %q: no connected %s at %s after %v", name, what, address, wait),
		Diagnostics: []core.Diagnostic{{
			Fix: "start the other side, or correct the address; publishing goes on by itself then",
		}},
	}
}

// closed is the fault of a message that was not sent before the end.
func closed(name string) *core.Fault {
	return &core.Fault{
		Code:    core.FaultClosed,
		Message: fmt.Sprintf("publish to %q: the endpoint is closed; the message was not sent", name),
	}
}

// tooMany is the fault of a message beyond the bounds of what waits.
func tooMany(name string, messages int, bytes int64) *core.Fault {
	return &core.Fault{
		Code: core.FaultExhausted, Transient: true,
		Message: fmt.Sprintf("publish to %q: %d messages of %d bytes wait for a peer already", name, messages, bytes),
	}
}

// noRoom is the fault of a message to a peer that does not read.
func noRoom(name, peer string, messages int, bytes int64) *core.Fault {
	return &core.Fault{
		Code: core.FaultExhausted, Transient: true,
		Message: fmt.Sprintf("publish to %q: the peer %s does not read, %d messages of %d bytes wait for it already",
			name, peer, messages, bytes),
	}
}

// peerGone is the fault of a reply to a peer that is not there.
func peerGone(name, address string) *core.Fault {
	return &core.Fault{
		Code:        core.FaultNotFound,
		Message:     fmt.Sprintf("publish to %q: the peer is gone from %s", name, address),
		Diagnostics: []core.Diagnostic{{Fix: "a reply reaches the connection that its request came by, as long as that is open"}},
	}
}
