// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"bytes"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// nap is a delivery that Said.Snooze has put off. It is not begun, has a place in
// the window, and keeps no key from others. All but the alarm is guarded by the
// lane's lock.
type nap struct {
	l     *Lane
	f     *flight // nil = it is over
	index int     // its place among the lane's naps
	alarm alarm
}

// snooze puts the delivery off, where its bounds and its source's hold allow it.
// It reports whether it has: s is free then. Of a lane that stops, a delivery
// that comes back by itself is let go instead.
func (s *settlement) snooze() bool {
	l, f, d := s.l, s.f, max(s.said.Outcome.After, 0)
	if s.left || f == nil || !s.maySnooze(d) {
		return false
	}
	own := f.alone()
	l.mu.Lock()
	v := f.state()
	if v == core.VoidReturns || l.stopping && f.letGo() == core.VoidReturns {
		l.mu.Unlock()
		if own != nil {
			own.Release()
		}
		if v != core.VoidLive {
			return false
		}
		s.judged()
		s.did |= didCut
		s.putOff = true
		s.finish()
		return true
	}
	if own != nil {
		f.unframe()
		f.frame, f.at, f.scope = own, 0, own.Items[0].Scope
	}
	f.snoozes++
	f.snoozed += d
	if f.key = s.key; f.key != nil {
		f.key.flights++
	}
	s.f = nil
	l.stopRunning(s)
	l.working--
	swept := l.skip(f) // a stop may have cancelled handlers meanwhile
	if !swept {
		l.putOff(f, d)
	}
	l.mu.Unlock()
	s.judged()
	s.reset()
	if swept {
		l.changed()
	}
	return true
}

// maySnooze reports whether the delivery's bounds and the source's hold leave it
// so long.
func (s *settlement) maySnooze(d time.Duration) bool {
	o, f := &s.l.o, s.f
	if f.snoozes >= o.SnoozeLimit || d > o.SnoozeTotal-f.snoozed {
		return false
	}
	c := f.caps()
	if c.MaxHold <= 0 || extension(c) > 0 {
		return true
	}
	return time.Since(f.received)+d <= c.MaxHold-c.MaxHold/shareForVerdict
}

// alone is a frame of the delivery alone: one that many share would be kept for
// it, however long it is put off. nil = it has no other.
func (f *flight) alone() *frame.Deliveries {
	if len(f.frame.Items) == 1 {
		return nil
	}
	item := *f.item()
	item.Message = item.Message.Clone()
	item.Scope = strings.Clone(item.Scope)
	item.Identity, item.Position, item.Carry = bytes.Clone(item.Identity), bytes.Clone(item.Position), bytes.Clone(item.Carry)
	item.Undecodable = foreignFault(item.Undecodable)
	d := frame.DeliveriesOf(1)
	d.Items = append(d.Items, item)
	return d
}

// putOff has f begun again in d, behind what is queued then. l.mu is held.
func (l *Lane) putOff(f *flight, d time.Duration) {
	if d == 0 {
		l.queue = append(l.queue, f)
		l.rouse()
		return
	}
	n := &nap{l: l, f: f, index: len(l.naps)}
	n.alarm.ring = n.ring
	l.naps = append(l.naps, n)
	l.o.Waiting.clock.set(&n.alarm, time.Now().Add(d))
}

// ring is the clock's: the delivery is to be begun.
func (n *nap) ring() {
	l := n.l
	l.mu.Lock()
	defer l.mu.Unlock()
	f := n.f
	if f == nil {
		return
	}
	l.wake(n)
	l.queue = append(l.queue, f)
	l.rouse()
}

// wake takes n off the lane's naps. l.mu is held.
func (l *Lane) wake(n *nap) {
	last := l.naps[len(l.naps)-1]
	l.naps[n.index] = last
	last.index = n.index
	l.naps[len(l.naps)-1] = nil
	l.naps = l.naps[:len(l.naps)-1]
	n.f = nil
}

// sweepNaps ends those of the deliveries that are put off that end says it has
// ended. l.mu is held.
func (l *Lane) sweepNaps(end func(*flight) bool) bool {
	some := false
	for i := len(l.naps) - 1; i >= 0; i-- {
		if n := l.naps[i]; end(n.f) {
			some = true
			l.o.Waiting.clock.unset(&n.alarm)
			l.wake(n)
		}
	}
	return some
}

// doom has a delivery ended that was put off and is not to be begun again: its
// settlement is over, which is told without the lock, by l.changed. l.mu is held.
func (l *Lane) doom(f *flight) {
	s, v := l.settlement(), f.state()
	l.start(s, f)
	l.doomed = append(l.doomed, s)
	if v == core.VoidReturns {
		s.did |= didStale
		return
	}
	s.did |= didCut
	if l.closed {
		return
	}
	s.putOff = true
	if v == core.VoidLive && f.letGo() == core.VoidGone {
		s.final = frame.VerdictRun{First: f.id, Count: 1, Kind: core.VerdictRelease}
	}
	if v == core.VoidGone || f.letGo() == core.VoidGone {
		l.parting.Unhandled++
		l.parting.name(f)
	}
}
