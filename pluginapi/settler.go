// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"slices"
	"strconv"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// maxResults is how many results go into one frame.
const maxResults = 1024

// settler expands verdict runs, checks them, carries them out through Settle
// and answers. It owns its fields.
type settler struct {
	x        *subscription
	releaser Releaser
	late     LateAcker

	runs     []frame.VerdictRun
	items    []item // in the order of the verdicts
	verdicts []Verdict
	lates    []any // handles for AckLate
	released []any // handles for Release
	results  []frame.SettleResult
	ids      []uint64
	stale    uint64 // counted over the subscription
}

// item is the answer to one verdict, or to a run that is not there any more.
type item struct {
	id    uint64
	count uint64
	kind  core.VerdictKind
	by    answerer
	want  bool
	// of answers that are known already
	status frame.SettleStatus
	fault  *core.Fault
}

// answerer says where an answer comes from.
type answerer uint8

const (
	bySelf answerer = iota
	bySettle
	byAckLate
)

func (s *settler) init(x *subscription) {
	s.x = x
	s.releaser, s.late = x.powers.releaser, x.powers.late
	x.late.on = s.late != nil
	if x.powers.later != nil {
		x.powers.later.acceptLater(s.accept)
	}
}

func (s *settler) run() {
	defer close(s.x.settled)
	defer func() {
		if s.stale > 0 {
			s.x.log.Info("verdicts came too late", "stale", s.stale)
		}
	}()
	for s.next() {
		s.settle()
	}
}

// settle carries out the runs at hand, not while the subscription is moved.
func (s *settler) settle() {
	x := s.x
	x.moving.Lock()
	defer x.moving.Unlock()
	for i := range s.runs {
		s.expand(&s.runs[i])
	}
	s.carryOut()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.carried += uint64(len(s.runs))
	if len(x.seeks) > 0 {
		wake(x.toReceiver)
	}
}

// next waits for verdicts. It reports false at the end of the stream.
func (s *settler) next() bool {
	x := s.x
	for {
		x.mu.Lock()
		if x.ctx.Err() != nil {
			x.mu.Unlock()
			return false
		}
		if len(x.runs) > 0 {
			s.runs, x.runs = x.runs, s.runs[:0]
			x.settling = true
			x.mu.Unlock()
			return true
		}
		x.settling = false
		closing := x.closing
		x.mu.Unlock()
		wake(x.idle)
		if closing {
			return false
		}
		select {
		case <-x.toSettler:
		case <-x.ctx.Done():
		}
	}
}

// expand turns a run into items, one for each delivery that is there and one
// for each gap between them.
func (s *settler) expand(run *frame.VerdictRun) {
	if s.releaser != nil && (run.Kind == core.VerdictRelease) != (len(s.released) > 0) {
		s.carryOut() // verdicts and releases keep their order
	}
	x := s.x
	x.mu.Lock()
	defer x.mu.Unlock()
	next := run.First
	last := run.First + max(run.Count, 1) - 1
	if last < run.First {
		last = 1<<64 - 1
	}
	s.ids = x.ledger.Within(s.ids[:0], run.First, last)
	if s.late != nil {
		s.ids = x.late.within(s.ids, run.First, last)
		slices.Sort(s.ids)
	}
	for _, id := range s.ids {
		s.missing(next, id-next)
		s.verdict(run, id)
		next = id + 1
	}
	s.missing(next, last-next+1)
}

// missing answers count ids from first that are not there.
func (s *settler) missing(first, count uint64) {
	if count == 0 {
		return
	}
	if first > 0 { // id 0 is a host's question whether all before it has been answered
		s.stale += count
	}
	s.items = append(s.items, item{id: first, count: count, status: frame.SettleStale})
}

// verdict checks the verdict on one delivery and takes it up.
func (s *settler) verdict(run *frame.VerdictRun, id uint64) {
	x := s.x
	e := x.ledger.Find(id)
	if e == nil {
		s.lateVerdict(run, id)
		return
	}
	if e.Claimed {
		s.missing(id, 1)
		return
	}
	it := item{id: id, count: 1, kind: run.Kind, want: run.WantResult}
	switch f := unsupported(&x.profiles[e.Profile], run); {
	case f != nil && run.Kind == core.VerdictExtend:
		it.status, it.fault = frame.SettleUnsupported, f
	case f != nil:
		it.status, it.fault = frame.SettleUnsupported, f
		s.release(e.Handle)
		x.ledger.Remove(id)
	case x.cut:
		it.status, it.fault = frame.SettleFailed, closedFault("settle")
	case run.Kind == core.VerdictRelease:
		it.status = frame.SettleDone
		s.release(e.Handle)
		x.ledger.Remove(id)
	default:
		it.by = bySettle
		e.Claimed = run.Kind != core.VerdictExtend
		s.verdicts = append(s.verdicts, Verdict{
			Handle: e.Handle, Kind: run.Kind, Delay: run.Delay, Hold: run.Hold, Reason: run.Reason,
			id: id,
		})
	}
	s.items = append(s.items, it)
}

// release notes a delivery that is forgotten, for transports that want to know.
func (s *settler) release(handle any) {
	if s.releaser != nil {
		s.released = append(s.released, handle)
	}
}

// lateVerdict takes an ack of a voided delivery whose source may still take it.
func (s *settler) lateVerdict(run *frame.VerdictRun, id uint64) {
	handle, _ := s.x.late.take(id)
	if run.Kind != core.VerdictAck || s.x.cut {
		s.missing(id, 1)
		return
	}
	s.lates = append(s.lates, handle)
	s.items = append(s.items, item{id: id, count: 1, kind: run.Kind, by: byAckLate, want: true})
}

// carryOut calls the transport with what has been taken up, and answers.
func (s *settler) carryOut() {
	x := s.x
	var settled, lately []Result
	if len(s.verdicts) > 0 {
		n := len(s.verdicts)
		if f := contain(x.log, "Settle", func() { settled = x.sub.Settle(x.ctx, s.verdicts) }); f != nil {
			settled = failed(n, f)
		} else if len(settled) != n {
			x.log.Error("transport answers Settle short", "verdicts", n, "results", len(settled))
		}
	}
	if len(s.lates) > 0 {
		if f := contain(x.log, "AckLate", func() { lately = s.late.AckLate(x.ctx, s.lates) }); f != nil {
			lately = failed(len(s.lates), f)
		}
	}
	if len(s.released) > 0 {
		_ = contain(x.log, "Release", func() { s.releaser.Release(s.released) })
	}
	s.collect(settled, lately)
	clear(s.verdicts)
	clear(s.lates)
	clear(s.released)
	s.items, s.verdicts, s.lates, s.released = s.items[:0], s.verdicts[:0], s.lates[:0], s.released[:0]
	s.answer()
}

// failed returns n results that failed alike.
func failed(n int, f *core.Fault) []Result {
	return slices.Repeat([]Result{{Status: ResultFailed, Fault: f}}, n)
}

// collect ends the deliveries whose verdicts are answered, which returns their
// credit, and gathers what the host is told.
func (s *settler) collect(settled, lately []Result) {
	x := s.x
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range s.items {
		it := &s.items[i]
		voided := false
		switch it.by {
		case bySettle:
			var r Result
			r, settled = pop(settled)
			e := x.ledger.Find(it.id)
			voided = e == nil
			if r.Status == resultLater && x.powers.later != nil {
				switch {
				case voided:
					r.Status = ResultStale
				case e.Early:
					r.Status = ResultDone
				default:
					e.Later, e.Want = true, it.want
					continue
				}
			}
			it.status, it.fault = settleStatus(r)
			if !voided && (it.kind != core.VerdictExtend || it.status == frame.SettleStale) {
				x.ledger.Remove(it.id)
			}
		case byAckLate:
			var r Result
			r, lately = pop(lately)
			it.status, it.fault = settleStatus(r)
		}
		if it.by != bySelf && it.status == frame.SettleStale {
			s.stale++
		}
		if it.status != frame.SettleDone || it.want || voided {
			s.result(it)
		}
	}
	x.adjust()
}

// accept ends deliveries whose verdicts were taken up and are accepted now. It
// may be called from any goroutine.
func (s *settler) accept(ids []uint64) {
	x := s.x
	var results []frame.SettleResult
	x.mu.Lock()
	for _, id := range ids {
		e := x.ledger.Find(id)
		switch {
		case e == nil || !e.Claimed:
			continue
		case !e.Later: // its Settle has not returned yet
			e.Early = true
			continue
		case e.Want:
			results = append(results, frame.SettleResult{First: id, Count: 1, Status: frame.SettleDone})
		}
		x.ledger.Remove(id)
	}
	x.adjust()
	x.mu.Unlock()
	if len(results) == 0 {
		return
	}
	x.tell(&frame.SubscribeResponse{Settled: results})
}

// pop takes the first result; a transport that answers too few gets FAILED for
// the rest.
func pop(rs []Result) (Result, []Result) {
	if len(rs) == 0 {
		return Result{Status: ResultFailed, Fault: newFault(core.FaultInternal, "settle: the transport gave no result")}, nil
	}
	return rs[0], rs[1:]
}

// settleStatus returns a transport's result as it travels.
func settleStatus(r Result) (frame.SettleStatus, *core.Fault) {
	switch r.Status {
	case ResultDone:
		return frame.SettleDone, nil
	case ResultStale:
		return frame.SettleStale, brief(r.Fault)
	case ResultUnsupported:
		return frame.SettleUnsupported, brief(r.Fault)
	}
	if r.Fault == nil {
		r.Fault = newFault(core.FaultInternal, "settle: the transport gave no reason")
	}
	return frame.SettleFailed, brief(r.Fault)
}

// result appends an answer, joined with the one before where they are alike.
func (s *settler) result(it *item) {
	if n := len(s.results); n > 0 {
		last := &s.results[n-1]
		if it.id > last.First && last.First+last.Count == it.id && last.Status == it.status && last.Fault == it.fault {
			last.Count += it.count
			return
		}
	}
	s.results = append(s.results, frame.SettleResult{First: it.id, Count: it.count, Status: it.status, Fault: it.fault})
}

// answer sends the results.
func (s *settler) answer() {
	for rest := s.results; len(rest) > 0; {
		n := min(len(rest), maxResults)
		s.x.tell(&frame.SubscribeResponse{Settled: rest[:n]})
		rest = rest[n:]
	}
	clear(s.results)
	s.results = s.results[:0]
}

// unsupported says why a profile does not allow a verdict, nil when it does.
func unsupported(c *core.Capabilities, run *frame.VerdictRun) *core.Fault {
	switch run.Kind {
	case core.VerdictAck:
		if c.Ack != core.AckNone {
			return nil
		}
		return newFault(core.FaultUnsupported, "ack: the delivery cannot be acked")
	case core.VerdictRequeue:
		return unsupportedRequeue(c, run)
	case core.VerdictReject:
		if c.Reject != core.RejectNone {
			return nil
		}
		return newFault(core.FaultUnsupported, "reject: the source has no reject")
	case core.VerdictRelease:
		return nil
	case core.VerdictExtend:
		switch {
		case !c.Extend || run.Hold <= 0:
			return newFault(core.FaultUnsupported, "extend by %v: the hold cannot be prolonged", run.Hold)
		case run.Hold >= c.MaxHold:
			return newFault(core.FaultUnsupported, "extend by %v: the source's limit is %v", run.Hold, c.MaxHold)
		}
		return nil
	}
	return newFault(core.FaultUnsupported, "verdict kind %s is not known", strconv.Itoa(int(run.Kind)))
}

func unsupportedRequeue(c *core.Capabilities, run *frame.VerdictRun) *core.Fault {
	switch {
	case c.Requeue == core.RequeueNone:
		return newFault(core.FaultUnsupported, "requeue: the source takes nothing back")
	case run.Delay == 0:
		return nil
	case run.Delay < 0:
		return newFault(core.FaultUnsupported, "requeue: delay %v is negative", run.Delay)
	case c.Requeue != core.RequeueDelayed:
		return newFault(core.FaultUnsupported, "requeue after %v: the source requeues at once only", run.Delay)
	case c.MaxDelay != 0 && run.Delay >= c.MaxDelay:
		return newFault(core.FaultUnsupported, "requeue after %v: the source's limit is %v", run.Delay, c.MaxDelay)
	}
	return nil
}
