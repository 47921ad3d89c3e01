// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"context"
	"io"
	"slices"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// subscription is one key. Its fields are under the intake's lock.
type subscription struct {
	conn   *conn
	intake *intake
	key    string
	wake   chan struct{} // something to report

	receiving bool // a Receive is under way,
	room      pluginapi.Room
	queue     []queued
	bytes     int
	out       []pluginapi.Delivery // of the last batch, used again
	caughtUp  bool                 // said, and nothing handed on since

	looped  []*looped
	handed  []*looped // in the last batch: in the stream once Receive is called again
	newest  *receipt  // withheld for this subscription
	stopped bool      // nobody receives any more: copies are printed
}

// queued is a line that is read and not handed on.
type queued struct {
	delivery pluginapi.Delivery
	bytes    int
}

// reads reports whether a line is for this subscription.
func (s *subscription) reads(a *arrival) bool {
	return !a.skip && a.report == nil && (a.key == "" || a.key == s.key)
}

func (s *subscription) full() bool {
	return len(s.queue) >= maxQueued && len(s.queue) >= s.room.Messages || s.bytes >= maxQueuedBytes
}

// enter queues a line. One that another subscription has too is copied.
func (s *subscription) enter(a *arrival, shared bool) {
	d := a.delivery
	if shared {
		d.Message = d.Message.Clone()
	}
	if d.Message.Name == "" {
		d.Message.Name = s.key
	}
	s.queue = append(s.queue, queued{delivery: d, bytes: a.bytes})
	s.bytes += a.bytes
}

func (s *subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Profiles say that nothing is acknowledged.
func (s *subscription) Profiles() []core.Capabilities {
	return []core.Capabilities{s.conn.endpoint.capabilities(s.key)}
}

// Receive hands on lines and looped copies; the reader goes on as far as there
// is room.
func (s *subscription) Receive(ctx context.Context, room pluginapi.Room) (pluginapi.Batch, error) {
	i := s.intake
	var done answers
	i.mu.Lock()
	s.enterReceive(&done)
	for {
		b, err := s.take(room)
		if err != nil || !empty(&b) || ctx.Err() != nil {
			if err == nil && empty(&b) {
				err = context.Cause(ctx)
			}
			s.receiving, s.room = false, pluginapi.Room{}
			i.mu.Unlock()
			done.give()
			return b, err
		}
		s.room = room
		if !roomy(room) {
			s.letGo(&done)
		}
		i.changed()
		i.mu.Unlock()
		done.give()
		select {
		case <-s.wake:
		case <-ctx.Done():
		}
		i.mu.Lock()
	}
}

// enterReceive begins a Receive: what the last one returned is in the stream.
func (s *subscription) enterReceive(done *answers) {
	s.receiving = true
	for _, l := range s.handed {
		s.landed(l, done)
	}
	s.handed = s.handed[:0]
}

// roomy reports whether there is credit for a message.
func roomy(room pluginapi.Room) bool { return room.Messages > 0 && room.Bytes > 0 }

func empty(b *pluginapi.Batch) bool {
	return len(b.Reports)+len(b.Deliveries) == 0 && !b.CaughtUp
}

// take makes a batch of what there is. The copies come first.
func (s *subscription) take(room pluginapi.Room) (b pluginapi.Batch, err error) {
	i := s.intake
	if i.cut != nil {
		return b, i.cut
	}
	if len(i.reports) > 0 {
		b.Reports, i.reports = i.reports, nil
		i.changed()
	}
	s.out = s.out[:0]
	var taken int64
	more := func() bool { return len(s.out) < room.Messages && taken < room.Bytes }
	for len(s.looped) > 0 && more() {
		l := s.looped[0]
		s.looped = slices.Delete(s.looped, 0, 1)
		i.loops.leave(l)
		s.handed = append(s.handed, l)
		s.out = append(s.out, pluginapi.Delivery{Handle: l, Message: l.message})
		taken += int64(l.bytes)
	}
	n := 0
	for n < len(s.queue) && more() {
		s.out = append(s.out, s.queue[n].delivery)
		taken += int64(s.queue[n].bytes)
		s.bytes -= s.queue[n].bytes
		n++
	}
	s.queue = slices.Delete(s.queue, 0, n)
	if len(s.out) > 0 {
		b.Deliveries, s.caughtUp = s.out, false
		i.changed()
	}
	if !i.ended || len(s.queue)+len(s.looped) > 0 {
		return b, nil
	}
	switch {
	case i.settings.Loopback && i.cause == nil:
		if !roomy(room) {
			break // a copy that comes now is not delivered at once
		}
		b.CaughtUp = !s.caughtUp
		s.caughtUp = true
	case !empty(&b):
	case i.cause != nil:
		return b, i.cause
	default:
		return b, io.EOF
	}
	return b, nil
}

// Settle refuses: nothing travels back along a pipe.
func (s *subscription) Settle(_ context.Context, vs []pluginapi.Verdict) []pluginapi.Result {
	return slices.Repeat([]pluginapi.Result{{Status: pluginapi.ResultUnsupported}}, len(vs))
}

// Release tells that looped copies were handled, and so were in the stream.
func (s *subscription) Release(handles []any) {
	var done answers
	s.intake.mu.Lock()
	for _, h := range handles {
		if l, ok := h.(*looped); ok {
			s.landed(l, &done)
		}
	}
	s.intake.mu.Unlock()
	done.give()
}

// StopIntake prints the copies that are on their way back, and those to come:
// nobody receives them any more.
func (s *subscription) StopIntake() {
	s.intake.mu.Lock()
	s.intake.changed()
	s.desert() // unlocks
}

// Close ends the subscription. Copies that were on their way back to it are
// printed.
func (s *subscription) Close(context.Context) error {
	i := s.intake
	i.mu.Lock()
	i.subs = slices.DeleteFunc(i.subs, func(o *subscription) bool { return o == s })
	i.lost += uint64(len(s.queue))
	s.queue, s.bytes = nil, 0
	i.changed()
	s.desert() // unlocks
	return nil
}
