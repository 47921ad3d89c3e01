// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// dispatch holds what has arrived and is not begun, and the workers that begin
// it. All of it is guarded by the lane's lock.
//
// What is void and returns is never in here, and of a lane that stops only what
// would be lost: whoever makes it so sweeps it out under the same lock.
type dispatch struct {
	queue []*flight // in the order in which they came; from head on
	head  int
	keys  keys
	naps  []*nap // put off

	doomed []*settlement // were put off and are swept out; l.changed ends them

	workers   int    // that run
	idle      int    // of them, those that wait for lane.work
	gathering *batch // at most one gathers at a time; nil = none
	paused    bool
	seeking   *seeking  // whose caller waits; nil = none
	regained  time.Time // State.Regained
	pace      pace
	circuit   circuit
}

// backlog is how much has arrived and is not begun.
func (d *dispatch) backlog() int { return len(d.queue) - d.head + d.keys.waiting + len(d.naps) }

// ready reports whether there may be something to begin: of what is queued, the
// keys may be busy.
func (d *dispatch) ready() bool { return d.head < len(d.queue) || d.keys.freed != nil }

// barred reports whether no handler may be called now. A stop overrides it for
// what would be lost. l.mu is held.
func (l *Lane) barred() bool {
	return l.cancelled.Load() || !l.stopping && (l.paused || l.seeking != nil || l.circuit.state == CircuitOpen)
}

// shut reports whether nothing may be begun now. l.mu is held.
func (l *Lane) shut() bool {
	return l.barred() || l.pace.waits || l.circuit.probing > 0 && !l.stopping
}

// rouse has somebody look whether there is something to begin, where there may
// be: one worker is enough, since it looks for the next one itself. l.mu is held.
func (l *Lane) rouse() {
	switch {
	case l.gathering != nil:
		signal(l.more)
	case !l.ready() || l.shut():
	case l.idle > 0:
		signal(l.work)
	case l.workers < l.o.Workers && !l.closed:
		l.workers++
		l.goroutines.Go(l.serve)
	}
}

// take takes the next delivery to begin, nil = there is none now. Its key
// belongs to the caller, or to b. l.mu is held.
func (l *Lane) take(b *batch) *flight {
	if l.shut() || l.o.Pace != nil && l.pace.permits == 0 {
		return nil
	}
	f := l.next(b)
	if f != nil && l.o.Pace != nil {
		l.pace.permits--
	}
	return f
}

// next is take without asking whether anything may be begun. l.mu is held.
func (l *Lane) next(b *batch) *flight {
	if b != nil && b.draining != nil {
		if f := b.draining.pop(); f != nil {
			l.keys.waiting--
			return f
		}
		b.draining = nil
	}
	if f := l.keys.pop(b); f != nil {
		return f
	}
	for l.head < len(l.queue) {
		f := l.pop()
		k := f.key
		switch {
		case k == nil:
			return f
		case !k.busy:
			l.keys.claim(k, b)
			return f
		case b != nil && k.batch == b:
			return f
		default:
			l.keys.wait(f)
		}
	}
	return nil
}

// pop takes the first delivery off the queue. l.mu is held.
func (l *Lane) pop() *flight {
	f := l.queue[l.head]
	l.queue[l.head] = nil
	l.head++
	switch {
	case l.head == len(l.queue):
		l.queue, l.head = l.queue[:0], 0
	case l.head >= creditMessages && l.head >= len(l.queue)/2:
		n := copy(l.queue, l.queue[l.head:])
		clear(l.queue[n:])
		l.queue, l.head = l.queue[:n], 0
	}
	return f
}

// start gives a delivery that was taken to s. l.mu is held.
func (l *Lane) start(s *settlement, f *flight) {
	s.f = f
	s.key = l.keys.begun(f)
	l.working++
	s.index = len(l.running)
	l.running = append(l.running, s)
	l.circuit.probe(s)
}

// skip ends a delivery that is not to be begun. Nothing is said of one that goes
// back: by that a source that counts can tell it from one that a handler was
// given, which gets a verdict or a release. l.mu is held.
func (l *Lane) skip(f *flight) bool {
	v := f.state()
	goesBack := l.stopping && v == core.VoidLive && f.letGo() == core.VoidReturns
	switch {
	case v != core.VoidReturns && !goesBack && !l.cancelled.Load():
		return false
	case f.snoozes > 0:
		l.doom(f)
		return true
	case v == core.VoidReturns:
		l.counts.add(ResultStale)
	case goesBack:
		l.counts.add(ResultReleased)
	default:
		l.unhandled(f)
		return true
	}
	l.recycle(f)
	return true
}

// unhandled ends a delivery that would be lost and for which a stop has left no
// time. l.mu is held.
func (l *Lane) unhandled(f *flight) {
	l.parting.Unhandled++
	l.parting.name(f)
	l.counts.add(ResultReleased)
	if f.state() == core.VoidLive {
		f.gen.decide(frame.VerdictRun{First: f.id, Count: 1, Kind: core.VerdictRelease})
	}
	l.recycle(f)
}

// sweep ends what is not begun and is not to be. It reports whether there was
// anything, which l.changed is to be told. l.mu is held.
func (l *Lane) sweep() bool { return l.sweepBy(l.fate()) }

// sweepBy ends those of what is not begun that end says it has ended. l.mu is
// held.
func (l *Lane) sweepBy(end func(*flight) bool) bool {
	left := l.queue[:0]
	for _, f := range l.queue[l.head:] {
		if !end(f) {
			left = append(left, f)
		}
	}
	some := len(left) < len(l.queue)-l.head
	clear(l.queue[len(left):])
	l.queue, l.head = left, 0
	some = l.keys.sweep(end) || some
	some = l.sweepNaps(end) || some
	return l.sweepGathered(end) || some
}

// fate is what ends deliveries that are not to be begun.
func (l *Lane) fate() func(*flight) bool {
	if l.closed {
		return l.giveUp
	}
	return l.skip
}

// giveUp ends a delivery of a lane that is closed. l.mu is held.
func (l *Lane) giveUp(f *flight) bool {
	if f.snoozes > 0 {
		l.doom(f)
		return true
	}
	l.counts.add(ResultReleased)
	l.recycle(f)
	return true
}
