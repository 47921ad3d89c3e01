// SPDX-License-Identifier: Apache-2.0

package intake

import "github.com/longshore-go/longshore/plugins/mqtt/internal/packet"

// answers are acks on their way to a link. One goroutine uses them at a time.
type answers struct {
	list     []answered
	appendTo func(dst []byte) []byte // bound once
}

// answered is one answer: a PUBACK, PUBREC or PUBCOMP.
type answered struct {
	id    uint16
	typ   byte
	code  byte
	print uint64 // of a PUBACK
}

func (a *answers) init() {
	a.appendTo = func(dst []byte) []byte {
		for i := range a.list {
			dst = packet.AppendAck(dst, a.list[i].typ, a.list[i].id, a.list[i].code)
		}
		return dst
	}
}

// answer answers a packet that all receivers have settled: now, where it came on
// the live link, else when it comes again. Identifiers are the session's: one of
// an older link is never written to a newer one before the server has sent the
// packet there as well. in.mu is held.
func (in *Intake) answer(e *entry, to *answers) {
	switch {
	case in.live == nil || e.seen != in.number:
		e.state = stateSettled
	case e.qos == 1:
		to.list = append(to.list, answered{id: e.id, typ: packet.TypePuback, print: e.print})
		in.flight--
		in.forget(e)
	default:
		to.list = append(to.list, answered{id: e.id, typ: packet.TypePubrec})
		e.state = stateReceived
	}
}

// write writes the answers to the link that was live when they were given; without
// one there are none. in.mu is not held: a link may write at once.
func (a *answers) write(in *Intake, l Link) {
	if len(a.list) == 0 {
		return
	}
	if _, ok := l.Write(a.appendTo); !ok {
		in.unsent(l, a.list)
	}
	a.list = a.list[:0]
}

// unsent takes note of acks that were not written, for the link has ended. They
// leave when their packets come again. What QoS 2 needs for that is known anyway.
func (in *Intake) unsent(l Link, list []answered) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.number != l.Number() || in.fault != nil {
		return // a newer link is up, and may have brought them again
	}
	for i := range list {
		x := &list[i]
		if x.typ == packet.TypePuback && in.ids.get(x.id) == nil {
			in.ids.set(&entry{id: x.id, qos: 1, state: stateSettled, seen: in.number, print: x.print})
		}
	}
}
