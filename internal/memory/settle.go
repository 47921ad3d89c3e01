// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory/wire"
)

// settle carries out verdicts in order and answers each.
func (b *Broker) settle(p *peer, f *wire.Frame) {
	answer := &wire.Frame{Kind: wire.Results, Req: f.Req, Sub: f.Sub, Items: make([]wire.Item, len(f.Items))}
	c := b.consumer(p, f.Sub)
	for i := range f.Items {
		it := &f.Items[i]
		status, flt := wire.StatusStale, (*core.Fault)(nil)
		if c != nil {
			status, flt = b.verdict(c, it)
		}
		answer.Items[i] = wire.Item{ID: it.ID, Kind: status, Fault: flt}
	}
	p.send(answer)
}

// verdict carries out one verdict, or what a test put in its place.
func (b *Broker) verdict(c *consumer, it *wire.Item) (uint8, *core.Fault) {
	if it.Flag {
		return b.late(c, it), nil
	}
	r := c.out[it.ID]
	if r == nil {
		return wire.StatusStale, nil
	}
	kind := core.VerdictKind(it.Kind)
	if s := r.queue.faults.settle(kind, r.msg); s != nil {
		if s.Applied {
			b.apply(c, r, kind, it)
		}
		r.released = r.released || r.state == Outstanding && kind != core.VerdictExtend
		b.keep(r, kind, it, s.Status)
		return uint8(s.Status), s.Fault
	}
	if kind == core.VerdictAck && c.profiles[r.profile].Ack == core.AckCumulative {
		return b.ackUpTo(c, r, it), nil
	}
	status := b.apply(c, r, kind, it)
	b.keep(r, kind, it, SettleStatus(status))
	return status, nil
}

// late acks a message that came back and was not delivered again.
func (b *Broker) late(c *consumer, it *wire.Item) uint8 {
	if len(it.Position) != 8 {
		return wire.StatusStale
	}
	for _, q := range b.reads(c) {
		for _, r := range q.records {
			if r.msg.ID == positionID(it.Position) && r.state == Queued && r.delivery == it.ID {
				b.finish(r, Acked, "late")
				return wire.StatusDone
			}
		}
	}
	return wire.StatusStale
}

func (b *Broker) apply(c *consumer, r *record, kind core.VerdictKind, it *wire.Item) uint8 {
	profile := c.profiles[r.profile]
	switch kind {
	case core.VerdictAck:
		b.finish(r, Acked, "")
	case core.VerdictRequeue:
		late := profile.Requeue == core.RequeueDelayed && (profile.MaxDelay == 0 || it.Dur < profile.MaxDelay)
		if profile.Requeue == core.RequeueNone || it.Dur > 0 && !late {
			return wire.StatusUnsupported
		}
		b.back(r, profile.Order, it.Dur)
	case core.VerdictReject:
		switch profile.Reject {
		case core.RejectDrops:
			b.finish(r, Rejected, it.Text)
		case core.RejectDeadLetters:
			b.finish(r, DeadLettered, it.Text)
			m := r.msg
			m.By = "broker"
			b.accept(b.queue(r.msg.Queue+DeadSuffix), m)
		default:
			return wire.StatusUnsupported
		}
	case core.VerdictExtend:
		if !profile.Extend || it.Dur >= profile.MaxHold {
			return wire.StatusUnsupported
		}
		b.holdFor(r, profile, it.Dur)
	default:
		return wire.StatusUnsupported
	}
	return wire.StatusDone
}

// ackUpTo acks a delivery and all before it in its scope.
func (b *Broker) ackUpTo(c *consumer, last *record, it *wire.Item) uint8 {
	for _, r := range c.outstanding() {
		if r.msg.Scope == last.msg.Scope && r.delivery <= last.delivery {
			b.finish(r, Acked, "")
			b.keep(r, core.VerdictAck, it, SettleDone)
		}
	}
	return wire.StatusDone
}

// take accepts published messages, delivers what can be, and answers each.
func (b *Broker) take(p *peer, f *wire.Frame) {
	answer := &wire.Frame{Kind: wire.Receipts, Req: f.Req}
	var held *queue
	var stored []*record // of the answer's items
	for i := range f.Items {
		it := &f.Items[i]
		q := b.queue(it.Name)
		receipt := wire.Item{ID: it.ID, Kind: wire.StatusConfirmed}
		m := Message{
			Headers: it.Headers, Payload: it.Payload, By: p.endpoint, Purpose: it.Kind, Carry: it.Carry,
			DedupID: it.Text, DeliverAfter: it.Dur, Options: it.Options, Profile: it.Profile,
		}
		s := q.faults.publish(m)
		if b.most > 0 && b.messages >= b.most {
			b.flooded = true
			s = &PublishFault{Status: PublishRefused, Fault: fault(core.FaultExhausted, false, "the broker has taken %d messages", b.messages)}
		}
		if s != nil {
			receipt.Kind, receipt.Fault = uint8(s.Status), s.Fault
		}
		var r *record
		if s == nil || s.Applied {
			r, receipt.Flag = b.store(p, q, it, m)
			b.answered(r, it)
		}
		if q.faults.hold != nil {
			held = q
			q.faults.hold.keep(p, receipt)
			continue
		}
		answer.Items = append(answer.Items, receipt)
		stored = append(stored, r)
	}
	if held != nil {
		b.notify()
	}
	if b.patient {
		b.pump()
		b.answer(p, answer, stored)
		return
	}
	if len(answer.Items) > 0 {
		p.send(answer)
	}
	b.pump()
}

// store puts a published message into its queue, as its destination keeps it.
// It reports whether nobody reads it.
func (b *Broker) store(p *peer, q *queue, it *wire.Item, m Message) (r *record, unrouted bool) {
	if it.Dedup && m.DedupID != "" {
		if q.dedup[m.DedupID] {
			return nil, false
		}
		q.dedup[m.DedupID] = true
	}
	r = b.accept(q, m)
	switch core.Retention(it.Retain) {
	case core.RetainTransport:
	case core.RetainProcess:
		r.by = p
	case core.RetainNothing:
		for _, c := range b.consumers {
			if c.matches(q.name) {
				return r, false
			}
		}
		b.lose(r, "nobody read it")
		return r, true
	}
	return r, false
}

// seekFrom moves a subscription by the plugin's own wish.
func (b *Broker) seekFrom(p *peer, f *wire.Frame) *core.Fault {
	c := b.consumer(p, f.Sub)
	if c == nil {
		return fault(core.FaultNotFound, false, "seek: the subscription is not open")
	}
	to := Position{Kind: PositionKind(f.Num), Time: time.Unix(0, f.Num2)}
	if to.Kind == PositionExact {
		if len(f.Data) != 8 {
			return fault(core.FaultInvalid, false, "seek: not a position of this broker")
		}
		to.ID = positionID(f.Data)
	}
	for _, q := range b.reads(c) {
		b.seek(q, to)
	}
	return nil
}
