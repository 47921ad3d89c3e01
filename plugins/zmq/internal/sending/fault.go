// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
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
	return fault.Passing(core.FaultUnavailable, "start the other side, or correct the address; publishing goes on by itself then",
		"%s: no connected %s at %s after %v", fault.PublishTo(name), what, address, wait)
}

// closed is the fault of a message that was not sent before the end.
func closed(name string) *core.Fault {
	f := fault.Closed(fault.PublishTo(name))
	f.Message += "; the message was not sent"
	return f
}

// tooMany is the fault of a message beyond the bounds of what waits.
func tooMany(name string, messages int, bytes int64) *core.Fault {
	return fault.Passing(core.FaultExhausted, "publish more slowly, or start more readers",
		"%s: %d messages of %d bytes wait for a peer already", fault.PublishTo(name), messages, bytes)
}

// noRoom is the fault of a message to a peer that does not read.
func noRoom(name, peer string, messages int, bytes int64) *core.Fault {
	return fault.Passing(core.FaultExhausted, "the peer has to read its replies, or to ask for fewer at a time",
		"%s: the peer %s does not read, %d messages of %d bytes wait for it already", fault.PublishTo(name), peer, messages, bytes)
}

// peerGone is the fault of a reply to a peer that is not there.
func peerGone(name, address string) *core.Fault {
	f := fault.Refusal(core.FaultNotFound, "%s: the peer is gone from %s", fault.PublishTo(name), address)
	f.Diagnostics = []core.Diagnostic{{Fix: "a reply reaches the connection that its request came by, as long as that is open"}}
	return f
}

// canceled is the fault of a message that was given up while it waited.
func canceled(name string, cause error) *core.Fault {
	f := fault.Passing(core.FaultTimeout, "allow more time, or start more responders",
		"%s: no peer had room; the message was not sent: %v", fault.PublishTo(name), cause)
	if !errors.Is(cause, context.DeadlineExceeded) {
		f.Code, f.Transient, f.Diagnostics = core.FaultCanceled, false, nil
	}
	return f
}
