// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// within declares a budget.
func within(d time.Duration) func(*setup) {
	return func(s *setup) { s.o.MaxElapsed, s.o.Policy.Elapsed = d, true }
}

// first is the first failure that a message carries.
func first(t *testing.T, m core.Message) time.Time {
	t.Helper()
	v, ok := m.Headers.Get(core.FirstFailureHeader)
	if !ok {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, string(v))
	if err != nil {
		t.Errorf("first failure: %v", err)
	}
	return at
}

// Copies carry the time of the first failure from one to the next. A failure at
// the end of the budget is the last one, and the dead letter says it as well.
func TestBudgetTravelsWithCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, says(later(400*time.Millisecond)), within(time.Second), func(s *setup) {
			s.o.Policy.DeadLetter, s.o.Dead = true, open("q", stored)
			s.plugin = func(p *plugin) { p.looped = true }
		})
		synctest.Wait()
		start := time.Now()
		b.p.deliver(message("x", "x-longshore-first-failure", "never"))
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{
			"ACK; PUBLISH+400ms(own,1)", "ACK; PUBLISH+400ms(own,2)", "ACK; PUBLISH+400ms(own,3)", "WARN(L-CAP-DL); PUBLISH(q,4); ACK",
		}
		if diff := cmp.Diff(want, b.texts()); diff != "" {
			t.Error(diff)
		}
		out := b.p.outgoing()
		for i, m := range out {
			at := first(t, m.Message)
			if dead := i == len(out)-1; !dead && !at.Equal(start) || dead && !at.Equal(start.Truncate(time.Second)) {
				t.Errorf("publish %d: first failure %v, want %v", i, at, start)
			}
		}
		lines := b.logs.lines("L-CAP-DL")
		if len(lines) != 1 || lines[0]["msg"] != "time for attempts used up, going to the dead letter" {
			t.Errorf("lines %v", lines)
		}
	})
}

// Where no budget is declared no copy says when it failed, and what a message
// brings along is not read.
func TestNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, says(retry()), func(s *setup) { s.o.Policy.MaxAttempts = 3 })
		synctest.Wait()
		b.p.deliver(message("x"), message("y", "x-longshore-first-failure", "2001-01-01T00:00:00Z"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"PUBLISH(own,1); ACK", "PUBLISH(own,1); ACK"}, b.texts()); diff != "" {
			t.Error(diff)
		}
		if at := first(t, b.p.outgoing()[0].Message); !at.IsZero() {
			t.Errorf("first failure %v", at)
		}
	})
}

// A dead letter's attempts, and their time, begin anew where it is read.
func TestBudgetOfADeadLetterBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, says(retry()), within(time.Hour))
		synctest.Wait()
		for _, failed := range []string{"1999-12-01T00:00:00Z", "1999-12-31T00:30:00.5Z"} {
			b.p.deliver(message("x", core.TimeHeader, "1999-12-31T00:00:00Z", core.FirstFailureHeader, failed))
			synctest.Wait()
		}
		want := []string{"PUBLISH(own,1); ACK", "WARN(L-CAP-RJ); REJECT"}
		if diff := cmp.Diff(want, b.texts()); diff != "" {
			t.Error(diff)
		}
		if at := first(t, b.p.outgoing()[0].Message); !at.Equal(time.Now()) {
			t.Errorf("first failure %v, want %v", at, time.Now())
		}
	})
}

// A dead letter without causes does not say when it failed first: nothing on it
// would tell that this was before.
func TestBudgetWithoutCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enveloped := stored
		enveloped.Headers = core.HeadersEnveloped
		b := newBench(t, kindA, says(retry()), within(time.Hour), func(s *setup) {
			s.o.Policy.DeadLetter, s.o.Dead = true, open("q", enveloped)
		})
		synctest.Wait()
		b.p.deliver(message("x", core.FirstFailureHeader, "1999-12-31T00:00:00Z"))
		synctest.Wait()
		if diff := cmp.Diff([]string{core.CountHeader + ": 1"}, pairs(b.p.outgoing()[0].Headers)); diff != "" {
			t.Error(diff)
		}
	})
}

// A source that counts brings the delivery back itself: the lane remembers it,
// until it is settled otherwise.
func TestBudgetByIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := retry()
		b := newBench(t, kindC, func(*Delivery) Said { return Said{Outcome: said} }, within(time.Minute), func(s *setup) {
			s.o.Policy.DeadLetter, s.o.Dead = true, open("q", stored)
		})
		synctest.Wait()
		returns := func(n uint32) {
			m := message("x")
			m.Identity, m.Attempt = []byte("id"), n
			b.p.deliver(m)
			synctest.Wait()
		}
		start := time.Now()
		returns(1)
		time.Sleep(time.Minute - 1)
		returns(2)
		time.Sleep(time.Second)
		said.Kind = core.OutcomeLeave
		returns(3) // nobody has settled it
		said.Kind = core.OutcomeAck
		returns(4)
		said.Kind = core.OutcomeRetry
		again := time.Now()
		returns(1)
		time.Sleep(time.Minute)
		returns(2)
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"REQUEUE", "HOLD(50ms); REQUEUE", "RELEASE", "ACK", "REQUEUE", "WARN(L-CAP-DL); PUBLISH(q,1); ACK"}
		if diff := cmp.Diff(want, b.texts()); diff != "" {
			t.Error(diff)
		}
		out := b.p.outgoing()
		if at := first(t, out[0].Message); !at.Equal(again.Truncate(time.Second)) {
			t.Errorf("first failure %v, want %v and not %v", at, again, start)
		}
		if n := len(b.lane.failures.entries); n != 1 {
			t.Errorf("%d messages are remembered, want the last one", n)
		}
	})
}

// A source that counts and gives no identity: the budget cannot be kept, and
// that is said once.
func TestBudgetWithoutIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindC, says(retry()), within(time.Second))
		synctest.Wait()
		for range 3 {
			b.p.deliver(message("x"))
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"REQUEUE", "REQUEUE", "REQUEUE"}, b.texts()); diff != "" {
			t.Error(diff)
		}
		if lines := b.logs.lines("L-CHECK"); len(lines) != 1 || lines[0]["option"] != "MaxElapsed" {
			t.Errorf("lines %v", lines)
		}
	})
}

// The clock of who made the copy may be ahead: the budget begins now.
func TestBudgetOfAClockThatIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, says(retry()), within(time.Second))
		synctest.Wait()
		b.p.deliver(message("x", core.FirstFailureHeader, "2999-01-01T00:00:00Z"))
		synctest.Wait()
		if at := first(t, b.p.outgoing()[0].Message); !at.Equal(time.Now()) {
			t.Errorf("first failure %v, want %v", at, time.Now())
		}
	})
}

// What is never retried goes the way of the cap, without one and at once.
func TestSpent(t *testing.T) {
	tests := map[string]struct {
		caps   core.Capabilities
		change func(*setup)
		want   []string
		msg    string
	}{
		"dead letter": {kindA, func(s *setup) {
			s.o.Policy.MaxAttempts, s.o.Policy.DeadLetter, s.o.Dead = 9, true, open("q", stored)
		}, []string{"WARN(L-ERR); WARN(L-CAP-DL); PUBLISH(q,1); ACK"}, "never retried, going to the dead letter"},
		"none":                          {kindA, func(*setup) {}, []string{"WARN(L-ERR); WARN(L-CAP-RJ); REJECT"}, "never retried, no dead letter is declared"},
		"on a source that counts":       {kindC, func(*setup) {}, []string{"WARN(L-ERR); WARN(L-CAP-RJ); REJECT"}, "never retried, no dead letter is declared"},
		"on a source that cannot":       {kindU, func(*setup) {}, []string{"WARN(L-ERR); WARN(L-CAP-RJ); RELEASE"}, "never retried, no dead letter is declared"},
		"on one that comes back itself": {kindM, func(*setup) {}, []string{"WARN(L-ERR); WARN(L-CAP-RJ); ACK"}, "never retried, no dead letter is declared"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, tt.caps, func(*Delivery) Said {
					return Said{Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CauseError}, Err: errors.New("no such customer"), Spent: true}
				}, tt.change)
				synctest.Wait()
				b.p.deliver(frame.Delivery{Message: message("x").Message, Attempt: 1})
				synctest.Wait()
				if diff := cmp.Diff(tt.want, b.texts()); diff != "" {
					t.Error(diff)
				}
				lines := append(b.logs.lines("L-CAP-DL"), b.logs.lines("L-CAP-RJ")...)
				if len(lines) != 1 || lines[0]["msg"] != tt.msg {
					t.Errorf("lines %v", lines)
				}
			})
		})
	}
}
