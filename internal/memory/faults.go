// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory/wire"
)

// SettleStatus is what a fault answers a verdict with.
type SettleStatus uint8

// The answers.
const (
	SettleDone        = SettleStatus(wire.StatusDone)
	SettleStale       = SettleStatus(wire.StatusStale)
	SettleUnsupported = SettleStatus(wire.StatusUnsupported)
	SettleFailed      = SettleStatus(wire.StatusFailed)
)

// SettleFault answers verdicts in place of the broker.
type SettleFault struct {
	Kind    core.VerdictKind   // which verdicts; unspecified = all
	Only    func(Message) bool // of which messages; nil = all
	Times   int                // how often; 0 = always
	Status  SettleStatus       // the answer
	Applied bool               // the verdict is carried out all the same
	Fault   *core.Fault        // of SettleFailed; nil = a transient one
}

// PublishStatus is what a fault answers a publish with.
type PublishStatus uint8

// The answers.
const (
	PublishRefused = PublishStatus(wire.StatusRefused)
	PublishUnknown = PublishStatus(wire.StatusUnknown)
)

// PublishFault answers publishes in place of the broker.
type PublishFault struct {
	Only    func(Message) bool // which messages; nil = all
	Times   int                // how often; 0 = always
	Status  PublishStatus      // the answer
	Applied bool               // the message is stored all the same
	Fault   *core.Fault        // nil = a transient one
}

// faults are a queue's.
type faults struct {
	settles   []*SettleFault
	publishes []*PublishFault
	hold      *heldReceipts
	lose      int // of the next deliveries, those that do not arrive
	double    int
	delays    []delayed
	reorder   int // messages to wait for, which are then delivered in reverse
}

// FailSettles answers the next verdicts about a queue's messages with a fault.
// Several given faults are used up in order. The returned function takes it
// away.
func (b *Broker) FailSettles(queue string, f SettleFault) (cancel func()) {
	if f.Fault == nil && f.Status == SettleFailed {
		f.Fault = fault(core.FaultUnavailable, true, "settle failed on command")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queue(queue)
	q.faults.settles = append(q.faults.settles, &f)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		q.faults.settles = without(q.faults.settles, &f)
	}
}

// FailPublishes answers the next publishes to a queue with a fault. Several
// given faults are used up in order. The returned function takes it away.
func (b *Broker) FailPublishes(queue string, f PublishFault) (cancel func()) {
	if f.Fault == nil {
		f.Fault = fault(core.FaultUnavailable, true, "publish failed on command")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queue(queue)
	q.faults.publishes = append(q.faults.publishes, &f)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		q.faults.publishes = without(q.faults.publishes, &f)
	}
}

// Heal takes away all faults of a queue's deliveries, verdicts and publishes.
// Receipts that are held stay so.
func (b *Broker) Heal(queue string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queue(queue)
	q.faults = faults{hold: q.faults.hold}
	b.pump()
}

// settle returns the fault for one verdict, nil without.
func (f *faults) settle(kind core.VerdictKind, m Message) *SettleFault {
	for _, s := range f.settles {
		if s.Kind != core.VerdictUnspecified && s.Kind != kind || s.Only != nil && !s.Only(m) {
			continue
		}
		if s.Times > 0 {
			if s.Times--; s.Times == 0 {
				f.settles = without(f.settles, s)
			}
		}
		return s
	}
	return nil
}

// publish returns the fault for one publish, nil without.
func (f *faults) publish(m Message) *PublishFault {
	for _, s := range f.publishes {
		if s.Only != nil && !s.Only(m) {
			continue
		}
		if s.Times > 0 {
			if s.Times--; s.Times == 0 {
				f.publishes = without(f.publishes, s)
			}
		}
		return s
	}
	return nil
}

// without returns list without v.
func without[T comparable](list []T, v T) []T {
	var rest []T
	for _, o := range list {
		if o != v {
			rest = append(rest, o)
		}
	}
	return rest
}

// heldReceipts keeps receipts back.
type heldReceipts struct {
	peers []*peer
	items []wire.Item
}

func (h *heldReceipts) keep(p *peer, it wire.Item) {
	h.peers = append(h.peers, p)
	h.items = append(h.items, it)
}

// HoldReceipts keeps back the receipts of messages published to a queue until
// release is called. The messages are stored meanwhile.
func (b *Broker) HoldReceipts(queue string) (release func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queue(queue)
	h := &heldReceipts{}
	q.faults.hold = h
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if q.faults.hold == h {
			q.faults.hold = nil
		}
		for i, p := range h.peers {
			p.send(&wire.Frame{Kind: wire.Receipts, Items: h.items[i : i+1]})
		}
		h.peers, h.items = nil, nil
	}
}

// Pause stops deliveries of a queue until Resume.
func (b *Broker) Pause(queue string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue(queue).paused = true
}

// Resume lets deliveries go on.
func (b *Broker) Resume(queue string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue(queue).paused = false
	b.pump()
}

// Void ends deliveries of a queue that are under way, all of them or those
// whose message only selects, without a verdict: they come back or are lost.
// It returns how many.
func (b *Broker) Void(queue string, returns bool, only func(Message) bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var rs []*record
	for _, r := range b.queue(queue).records {
		if r.state == Outstanding && (only == nil || only(r.msg)) {
			rs = append(rs, r)
		}
	}
	b.void(rs, returns, "void on command")
	b.pump()
	return len(rs)
}

// Report sends an error that is bound to no delivery to the queue's
// subscriptions.
func (b *Broker) Report(queue string, f *core.Fault, position string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.consumers {
		if c.matches(queue) {
			c.peer.send(&wire.Frame{Kind: wire.Report, Sub: c.sub, Fault: f, Text: position})
		}
	}
}

// End ends the queue's subscriptions when they have read all there is; with a
// cause at once, with that error.
func (b *Broker) End(queue string, cause *core.Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cause == nil {
		b.queue(queue).end = true
		b.pump()
		return
	}
	for _, c := range b.consumers {
		if c.matches(queue) && !c.ended {
			c.ended = true
			c.peer.send(&wire.Frame{Kind: wire.End, Sub: c.sub, Fault: cause})
		}
	}
}

// CatchUp makes the queue's subscriptions say so whenever they have read all
// there is; they stay open.
func (b *Broker) CatchUp(queue string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue(queue).caught = true
	b.pump()
}
