// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"math/rand/v2"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// The waits between the tries of one copy: doubling from first to most, up to a
// quarter less by chance, so that copies that failed together do not come back
// together.
const (
	tryFirst = 100 * time.Millisecond
	tryMost  = 5 * time.Second
	keepMost = 30 * time.Second // of one that is kept
)

const (
	// shareForVerdict is the part of a MaxHold that tries leave for the verdict
	// after them: half of what a hold leaves, which may come before them.
	shareForVerdict = 20
	// tryLeast is what one try gets even where the hold is nearly over.
	tryLeast = time.Second
	// answerLeast is how long the receipt of a try is waited for at least, beyond
	// the end of the tries as well, where a missing one counts as sent: a
	// destination without a peer refuses after a while (5 s over ZeroMQ), and that
	// loss would not be told.
	answerLeast = 10 * time.Second
)

// publish publishes the copy, with as many tries as D2 allows.
func (s *settlement) publish() (core.Result, bool) {
	s.leave()
	if s.resend {
		s.resend = false
		s.again(s.fault)
		return 0, true
	}
	s.startTries()
	return s.try()
}

// startTries sets the bound of the tries: the limit, less where the source
// takes the delivery back before.
func (s *settlement) startTries() {
	now := time.Now()
	s.tries, s.deadline = 0, now.Add(s.l.o.PublishLimit)
	if f := s.f; f != nil {
		if hold := f.caps().MaxHold; hold > 0 && !f.caps().Extend {
			end := f.received.Add(hold - hold/shareForVerdict)
			if least := now.Add(tryLeast); end.Before(least) {
				end = least
			}
			if end.Before(s.deadline) {
				s.deadline = end
			}
		}
	}
}

// try hands the copy to its outbox.
func (s *settlement) try() (core.Result, bool) {
	f := s.f
	if f != nil && f.state() == core.VoidReturns {
		return core.ResultStaleReturns, false
	}
	route := s.target()
	if s.unread(route) {
		return core.ResultCut, false
	}
	box := s.l.o.Outboxes(route.To.Endpoint)
	if box == nil {
		s.fault = &core.Fault{Code: core.FaultNotFound, Message: "endpoint " + route.To.Endpoint + " is not attached"}
		if s.keeping {
			s.again(nil)
			return 0, true
		}
		return core.ResultRefused, false
	}
	p := &publish{out: s.out, copy: true, to: s}
	if s.step.Do == core.ActPublish {
		p.out.DeliverAfter = s.step.Delay
	}
	s.tries++
	due := s.deadline
	if least := time.Now().Add(answerLeast); !s.step.Again && due.Before(least) {
		due = least
	}
	token := s.offer(waitReceipt, due, box, p)
	p.token = token
	box.hand(p)
	s.recheck(token, f)
	return 0, true
}

// receive takes the receipt of a publish; late ones find another token.
func (s *settlement) receive(token uint64, r frame.Receipt) {
	if s.claim(token) {
		s.receipt(r)
	}
}

// receipt goes on with the receipt of a copy.
func (s *settlement) receipt(r frame.Receipt) {
	s.fault = r.Fault
	refused := r.Status == frame.ReceiptRefused
	if r.Unrouted && r.Status == frame.ReceiptConfirmed {
		s.unheard()
	}
	switch {
	case r.Status == frame.ReceiptConfirmed && s.keeping:
		s.kept()
	case r.Status == frame.ReceiptConfirmed:
		s.resume(core.ResultDone)
	case s.keeping, refused && r.Fault != nil && r.Fault.Transient:
		s.again(r.Fault)
	case refused:
		s.resume(core.ResultRefused)
	case !s.step.Again:
		s.resume(core.ResultUnknown)
	case !time.Now().Before(s.deadline):
		s.resume(core.ResultTransient)
	default:
		s.resend = true
		s.resume(core.ResultUnknown)
	}
}

// overdue goes on when the bound of the tries is reached while a receipt is
// missing. What was not sent has failed, for the reason of the try before where
// there was one; what was sent may have arrived.
func (s *settlement) overdue(unsent bool) {
	if before := s.fault; !unsent || s.tries < 2 || before == nil {
		s.fault = overdueReceipt(unsent).Fault
	}
	if unsent || s.step.Again {
		s.resume(core.ResultTransient)
		return
	}
	s.resume(core.ResultUnknown)
}

// overdueReceipt stands in for a receipt that did not come in time.
func overdueReceipt(unsent bool) frame.Receipt {
	if unsent {
		return frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{
			Code: core.FaultTimeout, Transient: true, Message: "not sent within the publish limit",
		}}
	}
	return frame.Receipt{Status: frame.ReceiptUnknown, Fault: &core.Fault{
		Code: core.FaultTimeout, Transient: true, Message: "no receipt within the publish limit",
	}}
}

// again waits for the next try, or gives up where it would come too late. The
// last one comes shortly before the end.
func (s *settlement) again(f *core.Fault) {
	now, wait := time.Now(), s.backoff()
	var least time.Duration
	if f != nil {
		least = f.RetryAfter
	}
	next := now.Add(max(wait, least))
	if last := s.deadline.Add(-tryLeast); !s.keeping && next.After(s.deadline) {
		if !now.Before(last) || now.Add(least).After(last) {
			s.resume(core.ResultTransient)
			return
		}
		next = last
	}
	flight := s.f
	s.recheck(s.await(waitAgain, next), flight)
}

// backoff is the wait before the next try.
func (s *settlement) backoff() time.Duration {
	most := tryMost
	if s.keeping {
		most = keepMost
	}
	wait := most
	if n := max(s.tries, 1) - 1; n < 16 {
		wait = min(most, tryFirst<<n)
	}
	return wait - time.Duration(rand.Int64N(int64(wait)/4+1))
}

// target is the route of the step in hand.
func (s *settlement) target() *core.Route {
	if s.step.To == core.TargetDead {
		return &s.c.Dead
	}
	return &s.c.Retry
}

// unread reports whether nobody will read a copy that leaves now: only this
// process would, it stops, and no journal has it.
func (s *settlement) unread(r *core.Route) bool {
	if r.Caps.Retains != core.RetainProcess || s.stored != "" {
		return false
	}
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	return s.l.stopping
}
