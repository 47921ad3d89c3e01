// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"fmt"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
)

// The limits of frames (docs/protocol.md).
const (
	MaxItems    = 256       // messages a frame
	MaxBytes    = 128 << 10 // bytes a frame, one larger message alone
	MaxPayload  = 64 << 20  // payload and headers of one message
	MaxWireSize = 65 << 20  // gRPC's limit on both sides
	MaxControl  = 2 << 20   // what a plugin says beside messages, verdicts and receipts; its empty entries take 70 times their bytes in memory
	MaxHeaders  = 64 << 10  // headers a frame; as many as MaxBytes has room for
	MaxEntries  = 4096      // verdict runs, results or receipts a frame
)

// Weight is what a message counts against windows and limits: the bytes of its
// payload and of its headers' names and values.
func Weight(m *core.Message) int {
	n := len(m.Payload)
	for i := range m.Headers {
		n += len(m.Headers[i].Name) + len(m.Headers[i].Value)
	}
	return n
}

// Check says why o cannot travel, nil when it can. A sender that checks each
// message before it joins a frame never has a whole frame refused for one.
func (o *Outgoing) Check() *core.Fault {
	if f := o.Fits(); f != nil {
		return f
	}
	if !utf8.ValidString(o.Message.Name) {
		return invalid("name", o.Message.Name)
	}
	for i := range o.Message.Headers {
		if n := o.Message.Headers[i].Name; !utf8.ValidString(n) {
			return invalid("header name", n)
		}
	}
	if !utf8.ValidString(o.DedupID) {
		return invalid("dedup id", o.DedupID)
	}
	return nil
}

// Fits says which limit o is over, nil when it is over none.
func (o *Outgoing) Fits() *core.Fault { return checkSize(&o.Message, sizeOutgoing(o)) }

// Fits says which limit d is over, nil when it is over none.
func (d *Delivery) Fits() *core.Fault { return checkSize(&d.Message, sizeDelivery(d)) }

// invalid refuses text that is no UTF-8, which the protocol's strings are.
func invalid(what, text string) *core.Fault {
	return &core.Fault{
		Code:    core.FaultInvalid,
		Message: fmt.Sprintf("message's %s %q is not UTF-8; send such bytes in a header's value or the payload", what, text),
	}
}

// checkSize refuses a message over a limit; wire is its size as an item.
func checkSize(m *core.Message, wire int) *core.Fault {
	if n := Weight(m); n > MaxPayload {
		return TooLarge("payload and headers of a message", n, MaxPayload)
	}
	if n := len(m.Headers); n > MaxHeaders {
		return &core.Fault{
			Code:    core.FaultTooLarge,
			Message: fmt.Sprintf("message has %d headers, the limit is %d", n, MaxHeaders),
		}
	}
	if n := wire + wrapping; n > MaxWireSize {
		return TooLarge("a message on the wire", n, MaxWireSize)
	}
	return nil
}

// TooLarge is the refusal of something that is over a limit of the protocol.
func TooLarge(what string, size, limit int) *core.Fault {
	return &core.Fault{
		Code:    core.FaultTooLarge,
		Message: fmt.Sprintf("%s: %d bytes are over the limit of %d; send a reference to the data instead", what, size, limit),
	}
}

// tooLong refuses an entry whose text does not fit a wire message.
func tooLong(what string) *core.Fault {
	return &core.Fault{
		Code:    core.FaultTooLarge,
		Message: fmt.Sprintf("%s is over the limit of %d bytes on the wire; shorten its text", what, MaxWireSize),
	}
}
