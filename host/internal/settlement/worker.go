// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"errors"
	"runtime/debug"

	"github.com/longshore-go/longshore/core"
)

// ErrExited is the cause of a handler that did not return.
var ErrExited = errors.New("handler ended its goroutine with runtime.Goexit; " +
	"t.FailNow and t.Fatal do so: call them in the test's own goroutine")

// serve is the worker: it begins one delivery after the other.
func (l *Lane) serve() { l.serveFrom(l.settlement()) }

// settlement returns one that is free.
func (l *Lane) settlement() *settlement {
	s, _ := l.spare.Get().(*settlement)
	return s
}

// serveFrom is the worker with s in hand. Where a handler ends the goroutine
// another one takes over, so that the lane does not stand still.
func (l *Lane) serveFrom(s *settlement) {
	defer func() {
		if s.handling {
			stack := string(debug.Stack())
			l.goroutines.Go(func() { l.takeOver(s, stack) })
		}
	}()
	for l.next(s) {
		if left := s.begin(); left {
			s = l.settlement()
		}
	}
}

// takeOver goes on with a delivery whose handler has ended the worker.
func (l *Lane) takeOver(s *settlement, stack string) {
	s.handling = false
	s.said = Said{Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CausePanic}, Err: ErrExited}
	if l.o.Exited != nil {
		s.said = l.o.Exited(l.handling, &s.d)
	}
	s.said.Stack = stack
	s.unsay()
	if left := s.goOn(); left {
		s = l.settlement()
	}
	l.serveFrom(s)
}
