// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"context"
	"fmt"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/internal/memory"
)

// The pauses between two looks at what tells nobody when it changes; a change at
// a broker cuts them short and begins with the first one again, which is
// short because in a bubble the clock moves by it.
const (
	lookFirst      = time.Microsecond
	lookMost       = 5 * time.Millisecond
	lookMostBubble = 10 * time.Second
)

// poll looks until done says so, the host has ended, or the limit is over. It
// reports which of them: whether it is done, and whether there was time left.
func (s *Service) poll(limit time.Duration, done func() bool) (ok, inTime bool) {
	most := lookMost
	if bubbled() {
		most = lookMostBubble
	}
	deadline := time.Now().Add(limit)
	for pause := lookFirst; ; pause = min(max(2*pause, lookFirst), most) {
		if done() {
			return true, true
		}
		if s.ended() {
			return done(), true
		}
		if time.Now().After(deadline) {
			return false, false
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-s.changed:
			pause = 0 // and soon again: the host may need a moment more
		case <-s.life.Done():
		}
		timer.Stop()
	}
}

// calm waits until nothing goes on in a bubble but what waits for time, so that
// a start takes none of it. Outside of one, and where another goroutine waits like
// this, it does nothing.
func calm() {
	if bubbled() {
		defer func() { _ = recover() }()
		synctest.Wait()
	}
}

func (s *Service) awaitReady() error {
	if !s.host.Ready() {
		calm()
	}
	ok, inTime := s.poll(s.limit(), s.host.Ready)
	switch {
	case ok:
		return nil
	case !inTime:
		return fmt.Errorf("the host is not ready after %v: %s", s.limit(), s.state())
	case s.err != nil:
		return fmt.Errorf("the host did not start: %w", s.err)
	default:
		return nil // its sources had ended
	}
}

// Ready waits until the host is ready again, as after a crash, and fails the
// test where it has ended or does not become so.
func (s *Service) Ready() {
	s.tb.Helper()
	ok, inTime := s.poll(s.limit(), s.host.Ready)
	switch {
	case ok:
	case inTime:
		s.tb.Fatalf("hosttest: waited for the host to be ready: %s%s", s.state(), s.reports())
	default:
		s.tb.Fatalf("hosttest: waited %v for the host to be ready: %s%s", s.limit(), s.state(), s.reports())
	}
}

// awaitEnd waits for the end of a stop and fails the test where that needs
// force.
func (s *Service) awaitEnd() {
	s.tb.Helper()
	if _, inTime := s.poll(s.limit(), s.ended); inTime {
		return
	}
	reports := s.reports() // before the abort changes it
	err := s.abort()
	s.taken.Store(true)
	s.tb.Errorf("hosttest: %v; a handler that does not look at its context holds up a stop, host.WithDrainLimit bounds it%s", err, reports)
}

func (s *Service) cleanup() {
	s.tb.Helper()
	s.cancel()
	s.awaitEnd()
	s.awaitResponders()
	if s.ended() && s.err != nil && !s.taken.Load() {
		s.tb.Errorf("hosttest: the host ended with an error: %v%s", s.err, s.reports())
	}
}

// awaitResponders lets what Respond was given come to an end: a bubble must not
// end before its goroutines.
func (s *Service) awaitResponders() {
	s.tb.Helper()
	if !bubbled() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.limit())
	defer cancel()
	for _, b := range s.brokers {
		if b.queues.Wait(ctx, "", func(v memory.View) bool { return v.Responding() == 0 }) != nil {
			s.tb.Errorf("hosttest: a function that Respond was given has not returned within %v after the host's end", s.limit())
		}
	}
}
