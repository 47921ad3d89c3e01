// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/internal/memory/wire"
	"github.com/longshore-go/longshore/pluginapi"
)

// subscription is one open registration, over reconnects.
type subscription struct {
	link       *link
	number     uint32
	name       string
	profiles   []core.Capabilities
	identities bool

	mu     sync.Mutex
	wake   chan struct{} // something to report
	epoch  int           // connections so far
	queue  []*delivery   // come, not handed on
	out    map[*delivery]struct{}
	voids  []pluginapi.Void
	report []pluginapi.Report
	caught bool
	ended  bool
	cause  *core.Fault
	closed bool
	told   chan struct{} // closed when the voids of a lost connection are handed on

	// Totals of this connection.
	handed, handedBytes int64
	toldHanded          int64
	asked               [2]int64 // last told limits
}

// delivery is the handle of one delivery.
type delivery struct {
	id    uint64
	epoch int
	bytes int64
	d     pluginapi.Delivery
}

func newSubscription(l *link, name string, profiles []core.Capabilities, identities bool) *subscription {
	return &subscription{
		link: l, name: name, profiles: profiles, identities: identities,
		wake: make(chan struct{}, 1), out: map[*delivery]struct{}{}, asked: [2]int64{-1, -1},
	}
}

// wrap adds the helpers of the SDK that the settings ask for.
func (s *subscription) wrap(src settings.Source) pluginapi.Subscription {
	switch {
	case src.Held:
		return pluginapi.Held(s, src.MaxHeld)
	case s.profiles[0].Ack == core.AckCumulative && !src.Raw:
		return pluginapi.Cumulative(s)
	case src.LateAcks:
		return lateSubscription{s}
	}
	return s
}

// opening is the frame that opens it.
func (s *subscription) opening() *wire.Frame {
	return &wire.Frame{Kind: wire.Subscribe, Sub: s.number, Name: s.name, Profiles: s.profiles, Flag: s.identities}
}

// Profiles are the settings' own.
func (s *subscription) Profiles() []core.Capabilities { return s.profiles }

// Receive hands on what has come and asks the broker for no more than room.
func (s *subscription) Receive(ctx context.Context, room pluginapi.Room) (pluginapi.Batch, error) {
	s.tellHanded(false) // what the last call returned was passed on
	for {
		s.link.panicAt(memory.PanicReceive)
		s.link.hangReceive()
		s.mu.Lock()
		b, ok := s.take(room)
		var err error
		if !ok && s.ended && len(s.queue) == 0 {
			err = io.EOF
			if s.cause != nil {
				err = s.cause
			}
		}
		if ok || err != nil {
			s.mu.Unlock()
			return b, err
		}
		want := s.want(room)
		s.mu.Unlock()
		if want != nil {
			// Without a connection reopening asks again.
			_ = s.link.tell(want)
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return pluginapi.Batch{}, context.Cause(ctx)
		}
	}
}

// StopIntake tells the broker that nothing more is handed on.
func (s *subscription) StopIntake() { s.tellHanded(true) }

// tellHanded tells the broker how far deliveries were handed on, where it wants
// to know.
func (s *subscription) tellHanded(last bool) {
	if !s.link.transport.tells {
		return
	}
	s.mu.Lock()
	handed := s.handed
	known := s.toldHanded == handed && !last
	s.toldHanded = handed
	s.mu.Unlock()
	if !known {
		// Without a connection nobody wants to know.
		_ = s.link.tell(&wire.Frame{Kind: wire.Handed, Sub: s.number, Num: handed, Flag: last})
	}
}

// take makes a batch of what there is; s.mu is held.
func (s *subscription) take(room pluginapi.Room) (b pluginapi.Batch, ok bool) {
	b.Voids, b.Reports = s.voids, s.report
	s.voids, s.report = nil, nil
	if s.told != nil {
		close(s.told)
		s.told = nil
	}
	n, bytes := 0, int64(0)
	for n < len(s.queue) && n < room.Messages && bytes < room.Bytes {
		d := s.queue[n]
		bytes += d.bytes
		n++
		b.Deliveries = append(b.Deliveries, d.d)
		s.out[d] = struct{}{}
	}
	s.queue = s.queue[n:]
	s.handed += int64(n)
	s.handedBytes += bytes
	if s.caught && len(s.queue) == 0 {
		b.CaughtUp, s.caught = true, false
	}
	return b, len(b.Voids)+len(b.Reports)+len(b.Deliveries) > 0 || b.CaughtUp
}

// want says how far the broker may deliver, nil when it knows; s.mu is held.
func (s *subscription) want(room pluginapi.Room) *wire.Frame {
	limits := [2]int64{s.handed + int64(room.Messages), s.handedBytes + room.Bytes}
	if limits == s.asked {
		return nil
	}
	s.asked = limits
	return &wire.Frame{Kind: wire.Want, Sub: s.number, Num: s.handed, Num2: limits[0], Num3: limits[1]}
}

func (s *subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// handle takes a frame from the broker.
func (s *subscription) handle(f *wire.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.signal()
	switch f.Kind {
	case wire.Deliver:
		for i := range f.Items {
			s.queue = append(s.queue, s.delivery(&f.Items[i]))
		}
	case wire.Voided:
		s.void(f)
	case wire.Report:
		s.report = append(s.report, pluginapi.Report{Fault: f.Fault, Position: f.Text})
	case wire.CaughtUp:
		s.caught = true
	case wire.End:
		s.ended, s.cause = true, f.Fault
	default: // of a later broker
	}
}

func (s *subscription) delivery(it *wire.Item) *delivery {
	d := &delivery{id: it.ID, epoch: s.epoch, bytes: int64(len(it.Payload))}
	for _, h := range it.Headers {
		d.bytes += int64(len(h.Name) + len(h.Value))
	}
	d.d = pluginapi.Delivery{
		Handle:  d,
		Message: core.Message{Name: it.Name, Headers: it.Headers, Payload: it.Payload},
		Attempt: it.Attempt, Profile: it.Profile, Scope: it.Scope, Identity: it.Identity,
		Position: it.Position, Carry: it.Carry, Undecodable: it.Fault,
	}
	if it.Time != 0 {
		d.d.PublishedAt = time.Unix(0, it.Time)
	}
	return d
}

// void takes deliveries away that the broker has taken back.
func (s *subscription) void(f *wire.Frame) {
	gone := map[uint64]bool{}
	for i := range f.Items {
		gone[f.Items[i].ID] = true
	}
	kept := s.queue[:0]
	for _, d := range s.queue {
		if !gone[d.id] {
			kept = append(kept, d)
			continue
		}
		// Never handed on, so never counted as handed: the broker's total has it.
		s.handed++
		s.handedBytes += d.bytes
	}
	s.queue = kept
	v := pluginapi.Void{Returns: f.Flag2}
	for d := range s.out {
		if gone[d.id] {
			v.Handles = append(v.Handles, d)
			delete(s.out, d)
		}
	}
	if len(v.Handles) == 0 {
		return
	}
	if v.Returns && len(s.out) == 0 && s.cumulative() {
		v = allReturn()
	}
	s.voids = append(s.voids, v)
}

// cumulative reports whether acks are cumulative. What all comes back of such a
// source is void as a whole, so that its acks begin anew and nothing that comes
// again is behind what was taken away.
func (s *subscription) cumulative() bool { return s.profiles[0].Ack == core.AckCumulative }

func allReturn() pluginapi.Void { return pluginapi.Void{All: true, Returns: true} }

// reset voids everything when the connection is lost.
func (s *subscription) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	s.queue, s.caught = nil, false
	s.handed, s.handedBytes, s.toldHanded, s.asked = 0, 0, 0, [2]int64{-1, -1}
	var lost, returning pluginapi.Void
	returning.Returns = true
	for d := range s.out {
		if s.profiles[d.d.Profile].Unsettled == core.UnsettledLost {
			lost.Handles = append(lost.Handles, d)
		} else {
			returning.Handles = append(returning.Handles, d)
		}
	}
	clear(s.out)
	if s.cumulative() {
		returning = allReturn()
	}
	for _, v := range []pluginapi.Void{lost, returning} {
		if v.All || len(v.Handles) > 0 {
			s.voids = append(s.voids, v)
		}
	}
	if len(s.voids) > 0 && s.told == nil {
		s.told = make(chan struct{})
	}
	s.signal()
}

// reopen opens it on a new connection.
func (s *subscription) reopen() {
	err := s.link.ask(s.opening(), func(r *wire.Frame) {
		if r == nil || r.Fault == nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended, s.cause = true, r.Fault
		s.signal()
	})
	if err != nil {
		return // lost again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = [2]int64{-1, -1}
	s.signal() // a Receive under way asks again
}

// Close ends the subscription. What was never handed on goes back.
func (s *subscription) Close(ctx context.Context) error {
	err := s.link.at(ctx, memory.AtEnd, s.name)
	s.mu.Lock()
	s.closed = true
	f := &wire.Frame{Kind: wire.Unsubscribe, Sub: s.number}
	for _, d := range s.queue {
		f.Items = append(f.Items, wire.Item{ID: d.id})
	}
	s.queue = nil
	if s.told != nil {
		close(s.told)
		s.told = nil
	}
	s.mu.Unlock()
	s.link.mu.Lock()
	delete(s.link.subs, s.number)
	s.link.mu.Unlock()
	// Without a connection there is nothing to end.
	_, _ = s.link.call(ctx, f)
	return err
}

// Seek moves the broker's position.
func (s *subscription) Seek(ctx context.Context, to pluginapi.Position) error {
	f := &wire.Frame{Kind: wire.Seek, Sub: s.number, Num: int64(to.Kind), Data: to.Value}
	if to.Kind == pluginapi.PositionTime {
		f.Num2 = to.Time.UnixNano()
	}
	if _, err := s.link.call(ctx, f); err != nil {
		return asFault(err)
	}
	return nil
}
