// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// maxBatch is the most bytes of messages that are gathered for a batch, as in
// Pulsar's own clients.
const maxBatch = 128 << 10

// gathering is what a part has gathered for a batch. Its zero value has nothing.
type gathering struct {
	n      int   // messages of the queue that were not written yet, at most
	weight int64 // of them, in bytes
	ripe   bool  // they are to be written, and what comes until all are
	timer  *time.Timer
}

// add takes note of a message that the part has got, where there are batches; o.mu is
// held.
func (g *gathering) add(p *part, e *entry) {
	o := p.lane.o
	if o.c.Batch <= 0 {
		return
	}
	g.n++
	g.weight += e.room
	switch {
	case g.ripe:
	case o.closed || g.n >= o.c.BatchMessages || g.weight >= maxBatch || alone(e):
		g.ripe = true
	case g.timer == nil:
		g.timer = time.AfterFunc(o.c.Batch, p.ripen)
	case g.n == 1:
		g.timer.Reset(o.c.Batch)
	}
}

// reset begins anew.
func (g *gathering) reset() {
	g.n, g.weight, g.ripe = 0, 0, false
	if g.timer != nil {
		g.timer.Stop()
	}
}

// ripen has written what was gathered.
func (p *part) ripen() {
	o := p.lane.o
	o.mu.Lock()
	switch {
	case p.queue.first == nil: // what was gathered was given up
		p.gathering.reset()
	case !p.gathering.ripe:
		p.gathering.ripe = true
		p.lane.turns(p)
	}
	p.pump()
	p.lane.rest()
	o.leave()
}

// alone reports whether a message cannot be part of a batch: the broker delays whole
// entries, and knows one number of each.
func alone(e *entry) bool { return e.message.DeliverAt > 0 || e.message.Sequence != nil }

// next returns how many messages of the queue are written next, as one entry; 0 = more
// is to be gathered. o.mu is held.
func (p *part) next() int {
	first, o := p.queue.first, p.lane.o
	again := first.tries > 0
	switch {
	case again:
	case o.c.Batch <= 0:
		return 1
	case !p.gathering.ripe:
		return 0
	case alone(first) || p.single:
		return 1
	}
	n, weight := 1, first.room
	for e := first.next; e != nil; e = e.next {
		if again && !e.follows(e.prev) {
			break
		}
		weight += e.room
		if !again && (n >= o.c.BatchMessages || n >= o.c.Window-p.sent.n || weight > maxBatch || alone(e)) {
			break
		}
		n++
	}
	return n
}

// write writes the first n messages of the queue as one entry, less of them where
// they are too large for the broker. o.mu is held.
func (p *part) write(s *session, n int) {
	first := p.queue.first
	again := first.tries > 0
	switch {
	case again:
	case first.message.Sequence != nil:
		first.sequence = uint64(*first.message.Sequence) //nolint:gosec // not below 0, see settings
		if first.taken = p.theirs <= first.sequence && first.sequence < p.ours; !first.taken {
			p.theirs = max(p.theirs, first.sequence+1)
		}
	default:
		first.sequence = p.number
	}
	for {
		fits, dead := p.send(s, n)
		if dead {
			s.closing = true // its end is on the way
			return
		}
		if fits {
			break
		}
		if n == 1 || again {
			first.finish(first.without(tooLarge(s.limit)))
			return
		}
		n /= 2
	}
	number := first.sequence
	p.number = max(p.number, number+uint64(n)) //nolint:gosec // above 0
	if first.message.Sequence == nil {
		p.ours = p.number
	}
	for i := range n {
		e := p.queue.first
		e.leave()
		e.tries++
		e.sequence, e.index, e.count = number, int32(i), int32(n) //nolint:gosec // as many as a window has
		p.sent.push(e)
	}
	if p.queue.first == nil {
		p.gathering.reset()
	}
}

// send gives the connection the first n messages of the queue as one entry, unless it
// is too large, or the connection has ended. o.mu is held.
func (p *part) send(s *session, n int) (fits, dead bool) {
	o, first := p.lane.o, p.queue.first
	head := wire.Send{
		Producer: s.id, Sequence: first.sequence, Name: s.name, Compression: o.c.Compression,
		PublishTime: o.born.Add(first.due - o.c.Timeout).UnixMilli(),
	}
	if n > 1 {
		o.batch.Reset()
		for i, e := 0, first; i < n; i, e = i+1, e.next {
			o.batch.Add(&e.message)
		}
		if o.batch.Bytes() > s.limit {
			return false, false
		}
	}
	dead = true
	s.conn.Send(func(dst []byte) []byte {
		dead = false
		from := len(dst)
		if n == 1 {
			dst = wire.AppendSend(dst, &head, &first.message)
		} else {
			dst = o.batch.AppendSend(dst, &head)
		}
		if n == 1 && len(dst)-from > s.limit && head.Compression != wire.NoCompression { // some grow by it
			head.Compression = wire.NoCompression
			dst = wire.AppendSend(dst[:from], &head, &first.message)
		}
		if fits = len(dst)-from <= s.limit; !fits {
			dst = dst[:from]
		}
		return dst
	})
	return fits, dead
}

// tooLarge is the fault of a message over the broker's limit. No larger frame may be
// sent: the broker would end the connection.
func tooLarge(limit int) *core.Fault {
	f := fault.Refusal(core.FaultTooLarge, "the message has, with what goes with it, more than %d bytes, the broker's limit", limit)
	f.Diagnostics = []core.Diagnostic{{Fix: "send less, or raise maxMessageSize of the broker"}}
	return f
}
