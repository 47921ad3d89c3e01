// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"hash/maphash"
	"math/bits"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// arrival is a packet of the read in hand.
type arrival struct {
	publish packet.Publish
	print   uint64
	size    int
	release uint16 // PUBREL of this identifier, 0 = it is a PUBLISH
}

// spareArrivals is how many arrivals are kept from one read to the next where it
// has fewer.
const spareArrivals = 4096

// Packet takes a PUBLISH or a PUBREL, and nothing else. It lies in the reader's
// memory until Handled. The error is a *packet.ProtocolError, with which the link
// is to end; Handled is called all the same.
func (in *Intake) Packet(_ Link, p *packet.Packet) error {
	in.arrivals = append(in.arrivals, arrival{})
	a := &in.arrivals[len(in.arrivals)-1]
	if p.Type == packet.TypePubrel {
		var ack packet.Ack
		if err := packet.ParseAck(p, &ack); err != nil {
			in.arrivals = in.arrivals[:len(in.arrivals)-1]
			return err
		}
		a.release = ack.ID
		return nil
	}
	if err := packet.ParsePublish(p, &a.publish); err != nil {
		in.arrivals = in.arrivals[:len(in.arrivals)-1]
		return err
	}
	a.size = sizeOf(&a.publish)
	if a.publish.QoS > 0 {
		a.print = in.printOf(&a.publish)
	}
	return nil
}

// printOf tells packets apart that have one identifier, one after the other: a
// server that gives up a message may use its identifier for another. User
// properties count, by which a copy differs from its original; other properties
// may change from one time to the next.
func (in *Intake) printOf(p *packet.Publish) uint64 {
	print := bits.RotateLeft64(maphash.Bytes(in.seed, p.Topic), 1) ^ maphash.Bytes(in.seed, p.Payload)
	if p.Users() == 0 {
		return print
	}
	for rest := p.Properties; len(rest) > 0; {
		f, after, ok := packet.CutProperty(rest)
		if !ok {
			break
		}
		if f.ID == packet.PropUser {
			print = bits.RotateLeft64(print, 1) ^ maphash.Bytes(in.seed, rest[:len(rest)-len(after)])
		}
		rest = after
	}
	return print
}

// Handled takes over what came in one read: it is queued for the receivers, and
// its memory is lent or given back, that of all other packets of the read as
// well. Where the server breaks the rules the link is ended.
func (in *Intake) Handled(l Link, r *packet.Reader) {
	if len(in.arrivals) == 0 {
		r.Spent()
		return
	}
	lent, read := lent{reader: r}, 0
	var err *packet.ProtocolError
	in.mu.Lock()
	in.clock = clock{}
	if in.live == l && !in.closed {
		for i := range in.arrivals {
			a := &in.arrivals[i]
			read += a.size
			if err = in.arrive(a); err != nil {
				break
			}
		}
		for _, b := range in.touched {
			b.own(read, &lent)
		}
	}
	due := in.lines.due(in.flight)
	in.mu.Unlock()
	lent.end()
	in.answers.write(in, l)
	for i, b := range in.touched {
		if b.owner != nil {
			b.owner.rouse()
		}
		in.touched[i] = nil
	}
	in.touched = in.touched[:0]
	in.spend()
	due.log(in)
	if err != nil {
		l.End(err, err.Code)
		return
	}
	in.press(l)
}

// spend forgets the arrivals.
func (in *Intake) spend() {
	n := len(in.arrivals)
	if cap(in.arrivals) > spareArrivals && n < cap(in.arrivals)/8 {
		in.arrivals = nil
	}
	clear(in.arrivals)
	in.arrivals = in.arrivals[:0]
}

// mostUnread bounds what a server has not read of what we have written to it: it
// could have answers made for ever. It is far more than a window of publishes.
const mostUnread = 64 << 20

// press ends a link whose server does not read.
func (in *Intake) press(l Link) {
	if n := l.Waiting(); n > mostUnread {
		l.End(fmt.Errorf("the server sends and does not read: %d bytes wait to be written to it", n), packet.CodeQuota)
	}
}

// arrive takes one packet. in.mu is held.
func (in *Intake) arrive(a *arrival) *packet.ProtocolError {
	p := &a.publish
	switch {
	case a.release != 0:
		in.release(a.release)
		return nil
	case p.QoS == 0:
		routes := in.match(a)
		for _, rt := range routes {
			in.give(rt, a, nil)
		}
		if len(routes) == 0 {
			in.leftOver(a)
		}
		return nil
	}
	counted, fresh, err := in.admit(a)
	if err != nil || !fresh {
		return err
	}
	if !counted {
		in.slot()
	}
	e := in.enter(a)
	routes := in.match(a)
	if len(routes) == 0 {
		in.leftOver(a)
		in.answer(e, &in.answers)
		return nil
	}
	for _, rt := range routes {
		in.give(rt, a, e)
	}
	return in.exceeded()
}

// slot counts one PUBLISH more that the live link has no answer for.
func (in *Intake) slot() {
	in.flight++
	in.counters.Unanswered = max(in.counters.Unanswered, uint64(in.flight))
	if in.beyond() && !in.overrun {
		in.overrun, in.lines.some, in.lines.overrun = true, true, true
	}
}

// beyond reports whether the live link has more messages without an answer than
// the server may send.
func (in *Intake) beyond() bool {
	return in.c.ReceiveMaximum > 0 && in.flight > in.c.ReceiveMaximum
}

// mostExcess bounds what waits of what came beyond the Receive Maximum. To end a
// link for the number alone would make some servers of no use: Mosquitto 2.0.11
// sends all it has queued behind the first ack of a full window.
const mostExcess = 64 << 20

func (in *Intake) exceeded() *packet.ProtocolError {
	if in.excess <= mostExcess {
		return nil
	}
	return &packet.ProtocolError{
		Code: packet.CodeReceiveMaximum, Type: packet.TypePublish,
		Reason: fmt.Sprintf("%d messages without an answer, and the limit (receive_maximum) is %d; %d bytes of those beyond it wait here",
			in.flight, in.c.ReceiveMaximum, in.excess),
	}
}

// leftOver counts a message that no filter matches: one that is left in the
// session from an earlier process. It is answered, since it would hold its slot
// for ever (M-14).
func (in *Intake) leftOver(a *arrival) {
	in.counters.LeftOver++
	in.lines.hit(lineLeft, a.publish.Topic, in.clock.now())
}

// give puts a message into the inbox of a route, or of the receiver whose turn it
// is. in.mu is held.
func (in *Intake) give(rt *Route, a *arrival, e *entry) {
	b, rc := &rt.box, rt.next()
	if rc != nil {
		b = &rc.box
	}
	if e == nil && (rc == nil && rt.opened || !in.makeRoom(b, rc, a)) {
		return
	}
	if b.fresh == 0 {
		in.touched = append(in.touched, b)
	}
	b.fresh++
	it := b.add()
	it.publish, it.size, it.link = a.publish, a.size, in.number
	b.bytes += int64(a.size)
	if seconds, ok := a.publish.Expiry(); ok {
		it.deadline = in.clock.now().UnixMilli() + int64(seconds)*1000
	}
	if e != nil {
		it.handle = in.hold(e, rc)
		if it.excess = in.beyond(); it.excess {
			in.excess += int64(a.size)
		}
		return
	}
	it.loose = true
	b.loose++
	in.loose.add(a.size)
}

// makeRoom reports whether a message of QoS 0 may wait. Nobody holds up the
// server for it: where there is no room the newest is dropped, before a route is
// opened the oldest. in.mu is held.
func (in *Intake) makeRoom(b *inbox, rc *Receiver, a *arrival) bool {
	if rc == nil && b.loose >= heldLoose {
		in.dropOldest(b)
	}
	if in.room(a.size) {
		return true
	}
	in.counters.Dropped++
	in.lines.hit(lineDropped, a.publish.Topic, in.clock.now())
	return false
}
