// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
)

// DefaultMaxHeld is how many deliveries [Held] accepts at a time by default.
const DefaultMaxHeld = 10_000

// HeldCapabilities returns what a subscription whose deliveries have c can do
// under [Held], for Inspect: a requeue at once becomes a delayed one. A hold of
// the source bounds the delay.
func HeldCapabilities(c core.Capabilities) core.Capabilities {
	if c.Requeue == core.RequeueNow {
		c.Requeue, c.MaxDelay = core.RequeueDelayed, c.MaxHold
	}
	return c
}

// Held turns the requeue at once of sub into a delayed one: the delivery stays
// unsettled at the source and in the plugin until its delay is over, and is
// handed back then, in the order of the due times. The profiles of sub are the
// source's own: those with RequeueNow become delayed, those that cannot be
// handed back stay as they are, and one that says RequeueDelayed is a breach of
// the contract when the subscription opens. Verdicts are accepted, and
// their credit returns, as long as less than maxHeld are held (0 =
// DefaultMaxHeld); those beyond it are held all the same and accepted as others
// leave.
//
// A [Holder] is told what is held.
//
// Close hands nothing back: what is held stays unsettled, and the source's
// Unsettled says what becomes of it, as after a crash. A [Finisher] is told of it.
//
// # Caveats
//
// Handles must be comparable. Wrap nothing else around the result: the SDK would
// not see that it is a Held one.
func Held(sub Subscription, maxHeld int) Subscription {
	if maxHeld <= 0 {
		maxHeld = DefaultMaxHeld
	}
	return &held{
		sub: sub, limit: maxHeld, inner: powersOf(sub),
		turn:   make(chan struct{}, 1),
		change: make(chan struct{}, 1),
		scopes: make(map[any]string), delayed: -1,
	}
}

// held is a Subscription whose requeues wait in the plugin.
type held struct {
	sub   Subscription
	inner powers
	limit int

	turn   chan struct{} // held by the one call of the inner Settle
	change chan struct{} // the earliest due time has changed

	mu       sync.Mutex
	delayed  int // the first profile that delays by itself; -1 = none does
	heap     holds
	accepted int            // of those held
	waiting  []*hold        // held and not accepted yet, oldest first
	scopes   map[any]string // of unsettled deliveries that have one
	reports  []Report
	seq      uint64
	accept   func(ids []uint64)
	stop     context.CancelFunc // of the goroutine that hands back; nil = not running
	stopped  chan struct{}
	closed   bool
	left     []any // handles of what was held at the end
}

func (h *held) powers() powers {
	p := powers{later: h, stopper: h.inner.stopper, misfit: h.misfit}
	if h.inner.seeker != nil {
		p.seeker = h
	}
	if h.inner.releaser != nil {
		p.releaser = h
	}
	if h.inner.late != nil {
		p.late = h
	}
	if h.inner.finisher != nil {
		p.finisher = h
	}
	return p
}

func (h *held) acceptLater(accept func(ids []uint64)) { h.accept = accept }

// Profiles are the inner ones with delayed requeues.
func (h *held) Profiles() []core.Capabilities {
	inner := h.sub.Profiles()
	out := make([]core.Capabilities, len(inner))
	delayed := -1
	for i, c := range inner {
		out[i] = HeldCapabilities(c)
		if c.Requeue == core.RequeueDelayed && delayed < 0 {
			delayed = i
		}
	}
	h.mu.Lock()
	h.delayed = delayed
	h.mu.Unlock()
	return out
}

// misfit is the breach of an inner profile that delays by itself: Held could not
// tell whose delay it is, and the usual reason is a source that announces what
// Held makes of it and cannot delay.
func (h *held) misfit(where string) *core.Fault {
	h.mu.Lock()
	i := h.delayed
	h.mu.Unlock()
	switch {
	case i >= 0:
		return breach(where, fmt.Sprintf("profiles[%d].requeue", i), "is delayed without Held already",
			"let the wrapped subscription say RequeueNow and announce HeldCapabilities of it, or leave Held out")
	case h.inner.misfit != nil:
		return h.inner.misfit(where)
	}
	return nil
}

// Receive passes on what the inner one reports and drops what it says is void.
func (h *held) Receive(ctx context.Context, room Room) (Batch, error) {
	b, err := h.sub.Receive(ctx, room)
	h.tell(h.observe(&b))
	return b, err
}

// observe takes in what a batch says, adds reports, and returns the ids that
// are accepted since.
func (h *held) observe(b *Batch) []uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range b.Voids {
		h.void(&b.Voids[i])
	}
	for i := range b.Deliveries {
		if d := &b.Deliveries[i]; d.Scope != "" {
			h.scopes[d.Handle] = d.Scope
		}
	}
	b.Reports = append(b.Reports, h.reports...)
	h.reports = nil
	return h.admit()
}

// void drops what is held and void; h.mu is held.
func (h *held) void(v *Void) {
	match, fault := matcher("held subscription", v)
	if fault != nil {
		return // the SDK finds the same and ends the subscription
	}
	for _, x := range append([]*hold(nil), h.heap...) {
		if match(x.verdict.Handle, x.scope) {
			h.remove(x)
		}
	}
	for handle, scope := range h.scopes {
		if match(handle, scope) {
			delete(h.scopes, handle)
		}
	}
}

// remove takes x out of all there is; h.mu is held.
func (h *held) remove(x *hold) {
	heap.Remove(&h.heap, x.index)
	if x.accepted {
		h.accepted--
		return
	}
	for i, w := range h.waiting {
		if w == x {
			h.waiting = append(h.waiting[:i], h.waiting[i+1:]...)
			return
		}
	}
}

// admit accepts what waits for it as far as there is room, and returns the ids;
// h.mu is held.
func (h *held) admit() []uint64 {
	var ids []uint64
	for len(h.waiting) > 0 && h.accepted < h.limit {
		x := h.waiting[0]
		h.waiting = h.waiting[1:]
		x.accepted = true
		h.accepted++
		ids = append(ids, x.verdict.id)
	}
	return ids
}

// tell tells the SDK which verdicts are accepted now.
func (h *held) tell(ids []uint64) {
	if len(ids) > 0 && h.accept != nil {
		h.accept(ids)
	}
}

// Settle keeps delayed requeues and passes on everything else, in order.
func (h *held) Settle(ctx context.Context, vs []Verdict) []Result {
	if !slices.ContainsFunc(vs, func(v Verdict) bool { return v.Kind == core.VerdictRequeue && v.Delay > 0 }) {
		return h.settleNow(ctx, vs)
	}
	out := make([]Result, len(vs))
	pass, at, kept := h.sort(vs, out)
	wake(h.change)
	if len(pass) == 0 && len(kept) == 0 {
		return out
	}
	if !h.take(ctx) {
		return failed(len(vs), faultOf("settle", ctx.Err()))
	}
	defer h.give()
	if len(kept) > 0 {
		h.inner.holder.Hold(kept)
	}
	if len(pass) == 0 {
		return out
	}
	rs := h.sub.Settle(ctx, pass)
	for _, i := range at {
		out[i], rs = pop(rs)
	}
	return out
}

// settleNow passes on verdicts of which none is delayed.
func (h *held) settleNow(ctx context.Context, vs []Verdict) []Result {
	h.mu.Lock()
	for i := range vs {
		if len(h.scopes) > 0 && vs[i].Kind != core.VerdictExtend {
			delete(h.scopes, vs[i].Handle)
		}
	}
	h.mu.Unlock()
	if !h.take(ctx) {
		return failed(len(vs), faultOf("settle", ctx.Err()))
	}
	defer h.give()
	return h.sub.Settle(ctx, vs)
}

// sort keeps the delayed requeues, with their results in out, and returns the
// other verdicts, where their results belong, and what a Holder is told of.
func (h *held) sort(vs []Verdict, out []Result) (pass []Verdict, at []int, kept []any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, v := range vs {
		scope := h.scopes[v.Handle]
		if v.Kind != core.VerdictExtend {
			delete(h.scopes, v.Handle)
		}
		if v.Kind == core.VerdictRequeue && v.Delay > 0 && !h.closed {
			out[i] = h.hold(v, scope)
			if h.inner.holder != nil {
				kept = append(kept, v.Handle)
			}
			continue
		}
		pass, at = append(pass, v), append(at, i)
	}
	return pass, at, kept
}

// hold keeps one delivery; h.mu is held.
func (h *held) hold(v Verdict, scope string) Result {
	x := &hold{verdict: v, scope: scope, due: time.Now().Add(v.Delay), seq: h.seq}
	x.verdict.Delay = 0
	h.seq++
	heap.Push(&h.heap, x)
	if h.stop == nil {
		var ctx context.Context
		ctx, h.stop = context.WithCancel(context.Background())
		h.stopped = make(chan struct{})
		go h.run(ctx)
	}
	if h.accepted < h.limit || h.accept == nil {
		x.accepted = true
		h.accepted++
		return Result{Status: ResultDone}
	}
	h.waiting = append(h.waiting, x)
	return Result{Status: resultLater}
}

func (h *held) take(ctx context.Context) bool {
	select {
	case h.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (h *held) give() { <-h.turn }

// Finish ends the holding and passes on what was held.
func (h *held) Finish(ctx context.Context, more []any) {
	if !h.end(ctx) {
		return
	}
	h.mu.Lock()
	all := append(h.left, more...)
	h.mu.Unlock()
	h.inner.finisher.Finish(ctx, all)
}

// Close ends the holding and the inner subscription.
func (h *held) Close(ctx context.Context) error {
	h.end(ctx)
	return h.sub.Close(ctx)
}

// Seek moves the inner one; what is held is void then.
func (h *held) Seek(ctx context.Context, to Position) error {
	if err := h.inner.seeker.Seek(ctx, to); err != nil {
		return err
	}
	h.mu.Lock()
	h.void(&Void{All: true})
	h.mu.Unlock()
	return nil
}

// Release passes on.
func (h *held) Release(handles []any) {
	h.forget(handles)
	h.turn <- struct{}{}
	defer h.give()
	h.inner.releaser.Release(handles)
}

// forget drops what is known of deliveries.
func (h *held) forget(handles []any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range handles {
		delete(h.scopes, x)
	}
}

// AckLate passes on.
func (h *held) AckLate(ctx context.Context, handles []any) []Result {
	if !h.take(ctx) {
		return failed(len(handles), faultOf("settle", ctx.Err()))
	}
	defer h.give()
	return h.inner.late.AckLate(ctx, handles)
}
