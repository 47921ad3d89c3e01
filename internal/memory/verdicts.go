// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory/wire"
)

// Verdict is what a plugin said about a delivery.
type Verdict struct {
	Number  uint64 // rising over the broker
	Message Message
	Kind    core.VerdictKind
	Attempt uint32        // deliveries of the message so far
	Delay   time.Duration // of a requeue
	Reason  string        // of a reject
	Status  SettleStatus  // what it came to
	At      time.Time
}

// KeepVerdicts makes the broker keep every verdict but extensions. A release is
// among them where the transport tells of it. It is called before a plugin
// connects.
func (b *Broker) KeepVerdicts() { b.keeps = true }

// Verdicts returns what plugins said about the deliveries of a subscription, in
// order. With a cumulative ack all that it acks is there.
func (v View) Verdicts(subscription string) []Verdict {
	var vs []Verdict
	for _, name := range v.b.names {
		if name == subscription || v.b.matches(subscription, name) {
			vs = append(vs, v.b.queues[name].verdicts...)
		}
	}
	slices.SortFunc(vs, func(a, b Verdict) int { return cmp.Compare(a.Number, b.Number) })
	return vs
}

// Verdicts returns what plugins said about the deliveries of a subscription, in
// order.
func (b *Broker) Verdicts(subscription string) []Verdict {
	return see(b, func(v View) []Verdict { return v.Verdicts(subscription) })
}

// Pending counts what is still to be delivered or settled in queues that are
// read, or were; with KeepVerdicts also what a source without acks has
// delivered and the host has not released.
func (v View) Pending() int {
	n := 0
	for _, name := range v.b.names {
		if q := v.b.queues[name]; q != nil && v.b.reader(name) {
			n += q.pending()
		}
	}
	for _, c := range v.b.consumers {
		n += len(c.forgotten)
	}
	return n
}

// reader reports whether a queue is read, or was.
func (b *Broker) reader(queue string) bool {
	if b.opened[queue] {
		return true
	}
	for name := range b.opened {
		if b.matches(name, queue) {
			return true
		}
	}
	return false
}

// Flooded reports whether the Limit or that of LimitReturns is reached.
func (v View) Flooded() bool { return v.b.flooded }

// Round returns the message that LimitReturns has stopped the broker for.
func (v View) Round() (m Message, ok bool) {
	if v.b.round == nil {
		return m, false
	}
	return v.b.round.msg, true
}

// goesRound looks whether a message was delivered too often.
func (b *Broker) goesRound(r *record) {
	if b.mostBack == 0 {
		return
	}
	n := uint64(r.count)
	if count, ok := r.msg.Header(countHeader); ok {
		copies, _ := strconv.ParseUint(count, 10, 32) // a count that is none is not counted
		n = max(n, copies)
	}
	if n >= b.mostBack && !b.flooded {
		b.flooded, b.round = true, r
	}
}

// Names returns the queues in order of appearance.
func (v View) Names() []string { return v.b.names }

// CatchUpAll is CatchUp for all queues, those to come included.
func (b *Broker) CatchUpAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.caught = true
	b.pump()
}

// Patient makes CatchUp and End wait until nothing of a queue is to be delivered
// or settled any more, and the receipt of a message that is delivered at once
// until that is with the host. Its transports are Telling.
func (b *Broker) Patient() { b.patient = true }

// keep keeps a verdict.
func (b *Broker) keep(r *record, kind core.VerdictKind, it *wire.Item, status SettleStatus) {
	if !b.keeps || kind == core.VerdictExtend {
		return
	}
	b.verdicts++
	v := Verdict{Number: b.verdicts, Message: r.msg, Kind: kind, Attempt: r.count, Status: status, At: time.Now()}
	switch kind {
	case core.VerdictRequeue:
		v.Delay = it.Dur
	case core.VerdictReject:
		v.Reason = it.Text
	}
	r.queue.verdicts = append(r.queue.verdicts, v)
	b.notify()
}

// released takes note of deliveries that a plugin has forgotten.
func (b *Broker) released(p *peer, f *wire.Frame) {
	c := b.consumer(p, f.Sub)
	if c == nil {
		return
	}
	for i := range f.Items {
		r := c.out[f.Items[i].ID]
		if r == nil {
			if r = c.forgotten[f.Items[i].ID]; r == nil {
				continue
			}
			delete(c.forgotten, f.Items[i].ID)
		}
		r.released = true
		b.keep(r, core.VerdictRelease, &f.Items[i], SettleDone)
	}
}
