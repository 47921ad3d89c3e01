// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/client"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/topic"
)

// The packet identifiers of SUBSCRIBE and UNSUBSCRIBE. Those below belong to
// messages: a client has one set of them [MQTT-2.2.1-3].
const (
	firstID = 0xff00
	lastID  = 0xffff
)

// A refusal that may pass is tried again after the first pause, then after twice as
// long each time up to the last.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// link is what a connection is to subscriptions.
type link interface {
	Append(f func(dst []byte) []byte) (mark uint64, ok bool)
	Flush()
}

// route is where the messages of a filter go.
type route interface {
	Grant(qos byte)     // what the server has granted
	Fail(f *core.Fault) // nothing more comes
}

// stage is how far a subscription has come.
type stage uint8

const (
	off     stage = iota // not wanted, or refused
	wanted               // to be asked for
	asked                // SUBSCRIBE is written
	granted              // SUBACK is here
)

// sub is one filter.
type sub struct {
	filter Filter
	route  route
	stage  stage
	level  byte // the QoS asked for; once granted what was granted, since what is less cannot become more
	id     uint16
	proven bool      // it was granted in this process
	again  time.Time // not before
	pause  time.Duration
	done   chan struct{} // closed when the first answer is here
	fault  *core.Fault   // that answer, where it is a refusal
}

// subscriptions keeps the filters of a session subscribed to: it asks for them,
// again after each loss of the session, and again where a refusal may pass.
type subscriptions struct {
	log *slog.Logger

	mu     sync.Mutex
	link   link // nil = down
	limits client.Limits
	subs   []*sub          // in the order they were declared
	asks   map[uint16]*sub // nil value: an UNSUBSCRIBE
	next   uint16
	timer  *time.Timer
	timers sync.WaitGroup
	ended  *core.Fault // nothing is subscribed to any more
}

func newSubscriptions(log *slog.Logger) *subscriptions {
	return &subscriptions{log: log, asks: make(map[uint16]*sub), next: firstID}
}

// declare makes a filter known before it is subscribed to: filters that overlap are
// found among all.
func (s *subscriptions) declare(f Filter, r route) *sub {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &sub{filter: f, route: r, level: f.QoS}
	s.subs = append(s.subs, u)
	return u
}

// remove forgets a filter.
func (s *subscriptions) remove(u *sub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.subs {
		if s.subs[i] == u {
			s.subs = append(s.subs[:i:i], s.subs[i+1:]...)
			return
		}
	}
}

// subscribe waits until the server has granted a filter, or refused it, or ctx
// ends. Where it is granted already it returns at once.
func (s *subscriptions) subscribe(ctx context.Context, u *sub) *core.Fault {
	s.mu.Lock()
	if s.ended != nil {
		defer s.mu.Unlock()
		return s.ended
	}
	switch {
	case u.stage == granted || u.stage != off && u.proven:
		s.mu.Unlock()
		return nil
	case u.stage == off:
		u.stage, u.done, u.fault, u.again, u.pause = wanted, make(chan struct{}), nil, time.Time{}, 0
	}
	done := u.done
	l := s.ask()
	s.mu.Unlock()
	flush(l)
	select {
	case <-done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return u.fault
	case <-ctx.Done():
		return fault.Passing(core.FaultTimeout, "see why the server does not answer", "subscribe to %q: no answer came in time", u.filter.Wire())
	}
}

// qos is what a filter was granted.
func (s *subscriptions) qos(u *sub) byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return u.level
}

// unsubscribe takes a filter back. It does not wait for the answer.
func (s *subscriptions) unsubscribe(u *sub) {
	s.mu.Lock()
	if u.stage == off {
		s.mu.Unlock()
		return
	}
	u.proven = false
	was := u.stage
	s.answer(u, off, fault.Refusal(core.FaultCanceled, "subscribe to %q: it was taken back", u.filter.Wire()))
	l := s.link
	if l == nil || was == wanted {
		s.mu.Unlock()
		return
	}
	if id := s.free(); id != 0 {
		s.asks[id] = nil
		l.Append(func(dst []byte) []byte {
			dst, _ = packet.AppendUnsubscribe(dst, id, []string{u.filter.Wire()})
			return dst
		})
	}
	s.mu.Unlock()
	flush(l)
}

// abandon asks no more for a filter that the server has never granted: it may end
// each connection at it.
func (s *subscriptions) abandon(u *sub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !u.proven {
		s.answer(u, off, fault.Refusal(core.FaultCanceled, "subscribe to %q: it was given up", u.filter.Wire()))
	}
}

// up begins with a connection. Unless its session was resumed nothing is
// subscribed to any more.
func (s *subscriptions) up(l link, present bool, limits client.Limits) {
	s.mu.Lock()
	s.link, s.limits = l, limits
	clear(s.asks)
	for _, u := range s.subs {
		switch {
		case u.stage == asked, u.stage == granted && !present:
			u.stage, u.again, u.pause = wanted, time.Time{}, 0
		case u.stage == wanted:
			u.again, u.pause = time.Time{}, 0
		}
	}
	s.ask()
	s.mu.Unlock()
}

// down ends with a connection.
func (s *subscriptions) down() {
	s.mu.Lock()
	s.link = nil
	s.mu.Unlock()
}

// end is the end of it all, for a reason.
func (s *subscriptions) end(why *core.Fault) {
	s.mu.Lock()
	s.link, s.ended = nil, why
	if s.timer != nil && s.timer.Stop() {
		s.timers.Done()
	}
	s.timer = nil
	for _, u := range s.subs {
		s.answer(u, off, why)
	}
	s.mu.Unlock()
	s.timers.Wait()
}

// answer notes what became of a filter and tells who waits for it; s.mu is held.
func (s *subscriptions) answer(u *sub, to stage, why *core.Fault) {
	u.stage = to
	if u.done != nil {
		u.fault = why
		close(u.done)
		u.done = nil
	}
}

// ask writes a SUBSCRIBE for each filter that is wanted and due, and returns the
// link where it has written any; s.mu is held. Each has a packet of its own, since
// the identifier is the packet's (3.8.2.1.2); they leave in one write.
func (s *subscriptions) ask() link {
	if s.link == nil {
		return nil
	}
	var wrote link
	now := time.Now()
	var next time.Time
	for _, u := range s.subs {
		switch {
		case u.stage != wanted:
			continue
		case u.again.After(now):
			if next.IsZero() || u.again.Before(next) {
				next = u.again
			}
			continue
		}
		if f := s.refuses(u); f != nil {
			s.refused(u, f)
			continue
		}
		id := s.free()
		if id == 0 { // an answer makes room
			break
		}
		if !s.write(u, id) {
			break // the link has ended, and Up follows
		}
		u.stage, u.id, s.asks[id], wrote = asked, id, u, s.link
	}
	s.arm(next)
	return wrote
}

// write writes a filter's SUBSCRIBE; s.mu is held.
func (s *subscriptions) write(u *sub, id uint16) bool {
	identifier := uint32(0)
	if s.limits.Identifiers {
		identifier = topic.Identifier(u.filter.Wire())
	}
	_, ok := s.link.Append(func(dst []byte) []byte {
		dst, _ = packet.AppendSubscribe(dst, id, identifier, []packet.Subscription{u.filter.subscription(u.level)}) // its filter was checked
		return dst
	})
	return ok
}

// refuses says why a filter is not asked for on this server; s.mu is held.
func (s *subscriptions) refuses(u *sub) *core.Fault {
	if f := unable(&u.filter, &s.limits); f != nil || s.limits.Identifiers {
		return f
	}
	for _, o := range s.subs {
		if o != u && topic.Overlap(o.filter.Name, u.filter.Name) {
			return confused(&u.filter, &o.filter)
		}
	}
	return nil
}

// free returns a packet identifier that no answer is awaited under, 0 = there is
// none; s.mu is held.
func (s *subscriptions) free() uint16 {
	for range lastID - firstID + 1 {
		id := s.next
		if s.next++; s.next < firstID { // it has run over
			s.next = firstID
		}
		if _, taken := s.asks[id]; !taken {
			return id
		}
	}
	return 0
}

// acked takes a SUBACK or UNSUBACK.
func (s *subscriptions) acked(typ byte, a *packet.Suback) error {
	s.mu.Lock()
	u, known := s.asks[a.ID]
	if !known || (u == nil) != (typ == packet.TypeUnsuback) || len(a.Codes) != 1 {
		s.mu.Unlock()
		return &packet.ProtocolError{Code: packet.CodeProtocolError, Type: typ, Reason: "it answers nothing that was asked"}
	}
	delete(s.asks, a.ID)
	switch {
	case u == nil || u.stage != asked || u.id != a.ID: // taken back meanwhile
	case a.Codes[0] >= packet.CodeError:
		s.refused(u, refusal(&u.filter, a.Codes[0], a.Reason))
	default:
		s.granted(u, a.Codes[0])
	}
	l := s.ask()
	s.mu.Unlock()
	flush(l)
	return nil
}

// granted notes that the server has granted a filter; s.mu is held.
func (s *subscriptions) granted(u *sub, qos byte) {
	if qos < u.level {
		s.log.Warn("the server grants a lower QoS than was asked for", "filter", u.filter.Wire(), "asked", u.level, "granted", qos)
	}
	u.level, u.proven = min(qos, u.level), true
	u.route.Grant(u.level)
	s.answer(u, granted, nil)
}

// refused notes that the server has refused a filter; s.mu is held. Who waits for
// it is told. Later on a refusal that may pass is tried again, any other ends what
// the filter is for.
func (s *subscriptions) refused(u *sub, f *core.Fault) {
	switch {
	case !u.proven:
		s.answer(u, off, f)
	case f.Transient:
		if u.pause == 0 {
			s.log.Warn("the server refuses a subscription that it had granted; it is asked again", "filter", u.filter.Wire(), "error", f.Error())
		}
		u.pause = min(max(2*u.pause, firstPause), lastPause)
		u.stage, u.again = wanted, time.Now().Add(u.pause/2+rand.N(u.pause/2+1))
	default:
		s.log.Error("the server refuses a subscription that it had granted", "filter", u.filter.Wire(), "error", f.Error())
		u.proven = false
		s.answer(u, off, nil)
		u.route.Fail(f)
	}
}

// arm sets the timer for what is due later; s.mu is held.
func (s *subscriptions) arm(at time.Time) {
	if at.IsZero() || s.timer != nil || s.ended != nil {
		return // one that is set rings and sets the next
	}
	s.timers.Add(1)
	s.timer = time.AfterFunc(time.Until(at), func() {
		defer s.timers.Done()
		s.mu.Lock()
		var l link
		if s.timer != nil {
			s.timer = nil
			l = s.ask()
		}
		s.mu.Unlock()
		flush(l)
	})
}

func flush(l link) {
	if l != nil {
		l.Flush()
	}
}
