// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/longshore-go/longshore/core"
)

// CircuitState is what a lane's circuit breaker is at.
type CircuitState uint8

// The states of a circuit breaker.
const (
	CircuitClosed   CircuitState = iota // deliveries are handled; also without a breaker
	CircuitOpen                         // nothing is begun
	CircuitHalfOpen                     // one at a time is handled as a probe
)

// String returns the state's name.
func (s CircuitState) String() string {
	switch s {
	case CircuitClosed:
		return "closed"
	case CircuitOpen:
		return "open"
	case CircuitHalfOpen:
		return "half-open"
	default:
		return fmt.Sprintf("circuit state %d", uint8(s))
	}
}

// circuit is a lane's circuit breaker. All of it is guarded by the lane's lock.
type circuit struct {
	state    CircuitState
	last     []bool // outcomes: whether each was a failure
	at       int    // the oldest of them, once there are Circuit.Of
	failures int    // of the last
	pause    time.Duration
	alarm    alarm

	epoch   uint64 // of probes; those of a former one count for nothing
	probing int    // probes that have no outcome yet
	passed  int    // probes in a row without a failure
}

// judged counts the outcome of s for the circuit breaker.
func (s *settlement) judged() {
	l := s.l
	if l.o.Circuit == nil {
		return
	}
	l.mu.Lock()
	turned := l.judge(s)
	to, pause := l.circuit.state, l.circuit.pause
	l.mu.Unlock()
	switch {
	case !turned:
		return
	case to == CircuitOpen:
		l.log.Warn("circuit breaker has opened, intake pauses", slog.Duration("pause", pause))
	default:
		l.log.Info("circuit breaker has closed, intake goes on")
	}
	l.changed()
}

// judge is judged with l.mu held. It reports whether the breaker has opened or
// closed.
func (l *Lane) judge(s *settlement) bool {
	o := l.o.Circuit
	failed := false
	switch kind := s.said.Outcome.Kind; {
	case s.said.Outcome.Cause == core.CauseUndecodable:
		return l.inconclusive(s)
	case kind == core.OutcomeRetry, kind == core.OutcomeRetryAfter:
		failed = !s.said.Spent // what no retry cures is the message's fault
	case kind == core.OutcomeAck, kind == core.OutcomeDrop, kind == core.OutcomeDeadLetter:
	default:
		return l.inconclusive(s)
	}
	c := &l.circuit
	switch c.state {
	case CircuitClosed:
		c.count(failed, o.Of)
		if len(c.last) < o.Of || float64(c.failures) < o.Share*float64(o.Of) {
			return false
		}
		l.trip()
	case CircuitHalfOpen:
		if !c.ended(s) {
			return false
		}
		if failed {
			l.trip()
			break
		}
		if c.passed++; c.passed < o.Probes {
			l.rouse()
			return false
		}
		c.pause = 0
		l.turnTo(CircuitClosed)
	default:
		return false
	}
	return true
}

// inconclusive is the end of a delivery that had no outcome to count: where it was
// a probe, another one is let through. It returns false. l.mu is held.
func (l *Lane) inconclusive(s *settlement) bool {
	if l.circuit.ended(s) {
		l.rouse()
	}
	return false
}

// count adds an outcome to the last ones.
func (c *circuit) count(failed bool, most int) {
	if len(c.last) < most {
		c.last = append(c.last, failed)
	} else {
		if c.last[c.at] {
			c.failures--
		}
		c.last[c.at] = failed
		c.at = (c.at + 1) % most
	}
	if failed {
		c.failures++
	}
}

// probe makes s a probe.
func (c *circuit) probe(s *settlement) {
	if c.state == CircuitHalfOpen && s.probe != c.epoch {
		s.probe = c.epoch
		c.probing++
	}
}

// ended reports whether s was a probe of this epoch, which it is no longer.
func (c *circuit) ended(s *settlement) bool {
	was := s.probe != 0 && s.probe == c.epoch
	s.probe = 0
	if was {
		c.probing--
	}
	return was
}

// trip opens the breaker. l.mu is held.
func (l *Lane) trip() {
	c, o := &l.circuit, l.o.Circuit
	if c.pause == 0 {
		c.pause = min(o.Pause, o.Longest)
	} else {
		c.pause = min(2*c.pause, o.Longest)
	}
	c.alarm.ring = l.tryAgain
	l.turnTo(CircuitOpen)
	l.o.Waiting.clock.set(&c.alarm, time.Now().Add(c.pause))
}

// tryAgain is the clock's: the pause is over.
func (l *Lane) tryAgain() {
	l.mu.Lock()
	if l.closed || l.circuit.state != CircuitOpen {
		l.mu.Unlock()
		return
	}
	l.turnTo(CircuitHalfOpen)
	l.mu.Unlock()
	l.changed()
}

// turnTo changes the breaker's state. l.mu is held.
func (l *Lane) turnTo(to CircuitState) {
	c := &l.circuit
	c.state = to
	c.epoch++
	c.last, c.at, c.failures, c.probing, c.passed = c.last[:0], 0, 0, 0, 0
	l.turned = time.Now()
	l.regrant()
	l.rouse()
}
