// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/core"
)

// journalLimit bounds one call of the journal.
const journalLimit = 30 * time.Second

// write carries out a step of the journal, beside everything else.
func (s *settlement) write() (core.Result, bool) {
	j := s.l.o.Journal
	if j == nil {
		return core.ResultFailed, false
	}
	s.leave()
	step, row, reason := s.step, s.stored, faultText(s.fault)
	c := Copy{
		To: s.target().To, Message: s.out.Message, Purpose: s.out.Purpose, Carry: s.out.Carry,
		Endpoint: s.l.o.Endpoint, Subscription: s.l.o.Subscription,
	}
	if s.marked {
		c.Message.Headers = c.Message.Headers[:len(c.Message.Headers)-1]
	}
	token := s.await(waitJournal, time.Time{})
	ok := s.l.spawn(func(ctx context.Context) {
		var stored string
		var err error
		switch step.Do {
		case core.ActStore:
			stored, err = j.Store(ctx, c, step.Delay)
		case core.ActPark:
			err = j.Park(ctx, c, row, reason)
		default:
			err = j.Forget(ctx, row)
		}
		s.written(token, stored, err)
	})
	if !ok {
		if s.claim(token) {
			return core.ResultCut, false
		}
	}
	return 0, true
}

// spawn runs f in a goroutine that Close waits for, with a limited context. It
// reports false when the lane is closed.
func (l *Lane) spawn(f func(ctx context.Context)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.goroutines.Go(func() {
		ctx, cancel := context.WithTimeout(l.settling, journalLimit)
		defer cancel()
		f(ctx)
	})
	return true
}

// written goes on after a call of the journal.
func (s *settlement) written(token uint64, row string, err error) {
	if !s.claim(token) {
		return
	}
	if err != nil {
		s.l.log.Debug("journal call failed", "step", s.step.Do.String(), "error", err)
		s.fault = &core.Fault{Code: core.FaultInternal, Message: err.Error()}
		s.resume(core.ResultFailed)
		return
	}
	s.stored = row // none after it was forgotten, or has become a parked one
	if row != "" {
		s.mark()
	}
	s.resume(core.ResultDone)
}

// mark puts the row's id onto a copy that only this process reads: the row is
// forgotten when the copy's own delivery is settled.
func (s *settlement) mark() {
	if s.target().Caps.Retains == core.RetainProcess && !s.marked {
		s.marked = true
		s.out.Message.Headers = append(s.out.Message.Headers,
			core.Header{Name: core.JournalHeader, Value: []byte(s.stored)})
	}
}

// forgetOwn removes the row that this delivery was published from, now that it
// is settled by an outcome other than none, and finishes s then. It reports
// false when there is no such row. A row that cannot be removed is published
// once more by the next run.
func (s *settlement) forgetOwn() bool {
	l, row := s.l, s.row
	if row == "" || l.o.Journal == nil {
		return false
	}
	s.row = ""
	if !s.settledForGood() {
		return false
	}
	s.leave()
	s.over = true
	token := s.await(waitJournal, time.Time{})
	ok := l.spawn(func(ctx context.Context) {
		if err := l.o.Journal.Forget(ctx, row); err != nil {
			l.warn(core.LogDouble, "journal row not removed, its copy is published again by the next run",
				"row", row, "error", err)
		}
		if s.claim(token) {
			s.finish()
		}
	})
	if !ok {
		ok = !s.claim(token)
	}
	return ok
}

// settledForGood reports whether the delivery will not come back, by an outcome
// other than none.
func (s *settlement) settledForGood() bool {
	k := s.c.Outcome.Kind
	if (k == core.OutcomeLeave || k == core.OutcomeFailFast) && s.plan.Notes&core.NoteOverCap == 0 {
		return false
	}
	if s.keeping && s.did&didPublish == 0 {
		return false // released by a stop
	}
	const not = didStale | didCut | didRequeue
	return s.did&not == 0 && (s.did&didSettle != 0 || s.final.Count > 0 || s.c.Void == core.VoidGone)
}
