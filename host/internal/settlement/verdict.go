// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// verdictOf is the protocol's word for what a plan decides.
func verdictOf(a core.Action) core.VerdictKind {
	switch a {
	case core.ActAck:
		return core.VerdictAck
	case core.ActRequeue:
		return core.VerdictRequeue
	case core.ActReject:
		return core.VerdictReject
	default:
		return core.VerdictRelease
	}
}

// verdict gives the verdict in hand. Where the plan ends with it and nothing but
// L-UNS follows its failure, nobody waits for the answer.
func (s *settlement) verdict() (core.Result, bool) {
	if s.f == nil {
		return core.ResultDone, false
	}
	run := frame.VerdictRun{First: s.f.id, Count: 1, Kind: verdictOf(s.step.Do), Delay: s.step.Delay}
	if run.Kind == core.VerdictReject {
		run.Reason = s.why()
	}
	if !s.wantsAnswer() {
		s.final = run
		return core.ResultDone, false
	}
	run.WantResult = true
	return s.ask(run)
}

// ask gives a verdict and waits for its answer. The wait begins before the
// verdict leaves, and nobody ends it in between.
func (s *settlement) ask(run frame.VerdictRun) (core.Result, bool) {
	s.leave()
	l, f := s.l, s.f
	s.wait.mu.Lock()
	defer s.wait.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	g := f.gen
	if f.state() != core.VoidLive || g.lost {
		r := f.stale()
		s.f = nil
		l.recycle(f)
		return r, false
	}
	s.start(waitAnswer, time.Time{}, nil, nil)
	f.wanted = true
	g.wanted[f.id] = f
	g.uncount(f)
	g.decide(run)
	return 0, true
}

// wantsAnswer reports whether what follows depends on the answer: another step,
// a failure that leads to more than L-UNS, a copy that is out, a row of the
// journal that goes with the verdict, or a test that looks at the results.
func (s *settlement) wantsAnswer() bool {
	return s.l.o.Observe != nil || s.did&didPublish != 0 || s.row != "" || !silent(&s.plan, &s.step)
}

// why is the reason of a reject, one line.
func (s *settlement) why() string {
	switch {
	case s.reason != nil:
		return oneLine(s.reason.Error(), shownText)
	case s.said.Err != nil:
		return oneLine(s.said.Err.Error(), shownText)
	default:
		return s.c.Outcome.Kind.String()
	}
}

// hold leaves the delivery unsettled for a while.
func (s *settlement) hold() (core.Result, bool) {
	s.leave()
	f := s.f
	token := s.await(waitHold, time.Now().Add(s.step.Delay))
	s.recheck(token, f)
	return 0, true
}

// keep leaves the delivery unsettled and tries to publish its copy for the life
// of the process.
func (s *settlement) keep() (core.Result, bool) {
	s.leave()
	s.keeping, s.deadline = true, time.Time{}
	s.again(nil)
	return 0, true
}

// kept acks a delivery whose copy went out at last.
func (s *settlement) kept() {
	s.acking = true
	s.did |= didPublish
	if s.step.To == core.TargetDead {
		s.did |= didDead
	}
	if s.f == nil {
		s.acked(core.ResultDone)
		return
	}
	if r, waits := s.ask(frame.VerdictRun{First: s.f.id, Count: 1, Kind: core.VerdictAck, WantResult: true}); !waits {
		s.acked(r)
	}
}

// acked ends a delivery that was kept.
func (s *settlement) acked(r core.Result) {
	switch r {
	case core.ResultDone, core.ResultStaleGone:
		s.did |= didSettle
	case core.ResultFailed, core.ResultStaleReturns:
		s.double()
	default:
	}
	s.resume(core.ResultDone)
}
