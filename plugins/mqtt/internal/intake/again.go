// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// admit looks whether a PUBLISH of QoS 1 or 2 is one that is known. fresh = it is
// a message that has to be delivered; counted = it holds a slot of the link
// already. in.mu is held.
func (in *Intake) admit(a *arrival) (counted, fresh bool, _ *packet.ProtocolError) {
	e := in.ids.get(a.publish.ID)
	if e == nil {
		return false, true, nil
	}
	counted = e.seen == in.number
	same := e.print == a.print && e.qos == a.publish.QoS
	var again bool
	switch {
	case e.state == stateReceived:
		// It is the same one until PUBREL, whatever its DUP flag says [MQTT-4.3.3-10];
		// but a server that has given up a message in between may use its identifier.
		again = same || counted
	case counted && same:
		// Nothing is sent again on one connection [MQTT-4.4.0-1]; some servers do all the
		// same, with DUP or without.
		again = !e.left
	case counted:
		return true, false, &packet.ProtocolError{
			Code: packet.CodeProtocolError, Type: packet.TypePublish,
			Reason: fmt.Sprintf("packet identifier %d is in use", e.id),
		}
	case e.qos == 1:
		again = same && a.publish.Dup
	default:
		again = same
	}
	if !again {
		f := fateGone
		if counted {
			f = fateReturns // it is that very message which is delivered anew
		}
		in.renounce(e, f)
		in.forget(e)
		return counted, true, nil
	}
	in.counters.Adopted++
	if !counted {
		e.seen = in.number
		in.slot()
	}
	switch e.state {
	case stateReceived:
		in.answers.list = append(in.answers.list, answered{id: e.id, typ: packet.TypePubrec})
	case stateSettled:
		in.answer(e, &in.answers)
	}
	return true, false, nil
}

// release takes a PUBREL. in.mu is held.
func (in *Intake) release(id uint16) {
	e := in.ids.get(id)
	code := packet.CodeSuccess
	switch {
	case e == nil || e.qos != 2 || e.state == stateHeld:
		// A former process has received it (M-08), or the server asks twice.
		code = packet.CodeIDNotFound
	default:
		if e.seen == in.number {
			in.flight--
		}
		in.forget(e)
	}
	in.answers.list = append(in.answers.list, answered{id: id, typ: packet.TypePubcomp, code: code})
}

// renounce ends what receivers have of a packet whose answer nobody waits for any
// more: it comes again (fateReturns), or it does not (fateGone), and then what
// waits here is all that is left of it. in.mu is held.
func (in *Intake) renounce(e *entry, f fate) {
	for e.first != nil {
		h := e.first
		switch {
		case h.fate == fateHanded:
			h.detach(f)
			h.receiver.void(h)
			in.counters.Voided++
			if f == fateReturns {
				in.returns[delivered{h.link, h.id}] = struct{}{}
			}
		case f == fateReturns:
			h.detach(fateOver)
		default:
			h.detach(fateOrphan)
		}
	}
}
