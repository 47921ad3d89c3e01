// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"fmt"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// Ack takes a PUBACK, PUBREC or PUBCOMP of the link. What follows from it is sent
// and told by the next Flush. An error is a *packet.ProtocolError, for which the
// connection ends. An identifier that nothing is waiting under is left alone: its
// message was answered before.
func (o *Outbox) Ack(l Link, typ byte, a *packet.Ack) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.link != l {
		return nil
	}
	e := o.ids.of(a.ID)
	switch {
	case typ == packet.TypePubcomp && o.ids.scrubbed(a.ID):
		return nil
	case e == nil:
		return o.stray(typ, a)
	case !e.given && !e.sent && !e.rel:
		return breach(typ, a.ID, "was not sent")
	}
	switch typ {
	case packet.TypePuback:
		return o.puback(e, a)
	case packet.TypePubrec:
		return o.pubrec(e, a)
	default:
		return o.pubcomp(e, a)
	}
}

// maxStrays is how many PUBRECs that nothing waits for are answered over one
// connection: one for each identifier of a process that is gone. A server that sends
// more and does not read would have the answers pile up.
const maxStrays = 1 << 16

// stray takes an answer that nothing waits for: its message has its receipt, or is
// of a process that is gone, and then the server waits for PUBREL (4.3.3).
func (o *Outbox) stray(typ byte, a *packet.Ack) error {
	if typ != packet.TypePubrec || a.Code >= packet.CodeError {
		return nil
	}
	if o.strays++; o.strays > maxStrays {
		return breach(typ, a.ID, "is not there, and neither were those of too many before")
	}
	o.control = packet.AppendAck(o.control, packet.TypePubrel, a.ID, packet.CodeIDNotFound)
	return nil
}

func (o *Outbox) puback(e *entry, a *packet.Ack) error {
	if e.post.QoS != 1 {
		return breach(packet.TypePuback, a.ID, "is of QoS 2")
	}
	o.finish(e, e.answered(packet.TypePuback, a))
	return nil
}

func (o *Outbox) pubrec(e *entry, a *packet.Ack) error {
	switch {
	case e.post.QoS != 2:
		return breach(packet.TypePubrec, a.ID, "is of QoS 1")
	case e.rel: // again, as an answer to DUP
		if o.strays++; o.strays > maxStrays {
			return breach(packet.TypePubrec, a.ID, "has its PUBREC already, as too many before had")
		}
	case a.Code >= packet.CodeError:
		o.finish(e, e.answered(packet.TypePubrec, a)) // no PUBREL follows (4.3.3)
		return nil
	default:
		if !e.given {
			o.inflight++
		}
		o.detach(e)
		o.released.push(e)
		e.rel, e.unrouted = true, a.Code == packet.CodeNoSubscribers
		o.suspect.acquit(e)
	}
	o.control = packet.AppendAck(o.control, packet.TypePubrel, a.ID, packet.CodeSuccess)
	return nil
}

func (o *Outbox) pubcomp(e *entry, a *packet.Ack) error {
	switch {
	case !e.rel:
		return breach(packet.TypePubcomp, a.ID, "has no PUBREC yet")
	case a.Code < packet.CodeError, a.Code == packet.CodeIDNotFound && e.recovered:
		// After a reconnect a server that does not know it any more has completed it
		// (3.7.2.1).
		r := pluginapi.Confirmed()
		r.Unrouted = e.unrouted
		o.finish(e, r)
	default:
		o.finish(e, pluginapi.Unknown(refusal(e, packet.TypePubcomp, a)))
	}
	return nil
}

// answered is the receipt of an entry that a PUBACK or a PUBREC ends.
func (e *entry) answered(typ byte, a *packet.Ack) pluginapi.Receipt {
	if a.Code >= packet.CodeError {
		return pluginapi.Refused(refusal(e, typ, a))
	}
	r := pluginapi.Confirmed()
	r.Unrouted = a.Code == packet.CodeNoSubscribers
	return r
}

func breach(typ byte, id uint16, what string) error {
	return &packet.ProtocolError{
		Code: packet.CodeProtocolError, Type: typ,
		Reason: fmt.Sprintf("the message with packet identifier %d %s", id, what),
	}
}
