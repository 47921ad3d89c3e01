// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"slices"
	"time"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// maxOutbox bounds the answers that the host does not read, in parts of the
// stream: it is beyond any window.
const maxOutbox = 1 << 18

// listen takes what the host says. It never waits for what is sent.
func (s *subscription) listen() {
	for {
		r := &pb.SubscribeRequest{}
		err := s.stream.RecvMsg(r)
		s.q.mu.Lock()
		s.active = time.Now()
		switch {
		case errors.Is(err, io.EOF):
			s.stopped, s.read = true, true
		case err != nil:
			s.broken = err
		default:
			s.broken = s.hear(r)
		}
		stop := err != nil || s.broken != nil || s.over
		s.q.changed.Broadcast()
		s.q.mu.Unlock()
		if stop {
			return
		}
	}
}

// hear carries out one message; the lock is held. An error ends the stream.
func (s *subscription) hear(r *pb.SubscribeRequest) error {
	if len(s.outbox) > maxOutbox {
		return refuse(fault(exhausted, "subscribe: the host does not read its results"))
	}
	switch part := r.GetPart().(type) {
	case *pb.SubscribeRequest_Start:
		return refuse(fault(invalid, "subscribe: start came twice"))
	case *pb.SubscribeRequest_Credit:
		s.window = part.Credit
		if s.conduct.Window != nil {
			s.window = s.conduct.Window(part.Credit)
		}
	case *pb.SubscribeRequest_Settle:
		runs := part.Settle.GetRuns()
		if len(runs) > maxEntries {
			return refuse(fault(invalid, "subscribe: %d runs in a frame, the limit is %d", len(runs), maxEntries))
		}
		if s.conduct.Waits {
			s.held = append(s.held, runs...)
			return nil
		}
		s.settle(runs)
	case *pb.SubscribeRequest_Seek:
		sought := &pb.Sought{Next: s.next}
		if !s.conduct.AnswersAll {
			sought.Fault = fault(unsupported, "seek: a queue has no positions")
		}
		s.outbox = append(s.outbox, &pb.SubscribeResponse{Part: &pb.SubscribeResponse_Sought{Sought: sought}})
	case *pb.SubscribeRequest_Stop:
		s.stopped = true
		if s.conduct.StopsAll {
			go s.p.stopAll()
		}
	}
	return nil
}

// settle carries out verdicts in order; the lock is held.
func (s *subscription) settle(runs []*pb.VerdictRun) {
	if s.p.store.frozen.Load() {
		return // the host is gone
	}
	var rs results
	for _, run := range runs {
		first, count := run.GetFirst(), max(run.GetCount(), 1)
		if first+count < first { // beyond the last number
			count = -first
		}
		for ; first == 0 && count > 0; first, count = first+1, count-1 {
			s.answer(&rs, run, 0, 1, pb.SettleStatus_SETTLE_STATUS_STALE, nil)
		}
		for ; first < s.next && count > 0; first, count = first+1, count-1 {
			status, f := s.verdict(first, run)
			s.answer(&rs, run, first, 1, status, f)
		}
		if count > 0 { // never sent
			s.answer(&rs, run, first, count, pb.SettleStatus_SETTLE_STATUS_STALE, nil)
		}
	}
	if s.conduct.Reversed {
		slices.Reverse(rs)
	}
	for part := range slices.Chunk(rs, maxEntries) {
		settled := &pb.Settled{Results: part}
		s.outbox = append(s.outbox, &pb.SubscribeResponse{Part: &pb.SubscribeResponse_Settled{Settled: settled}})
	}
}

// answer adds a result that the host must hear of.
func (s *subscription) answer(rs *results, run *pb.VerdictRun, first, count uint64, status pb.SettleStatus, f *pb.Fault) {
	if s.conduct.Status != nil {
		switch status = s.conduct.Status(run, status); status {
		case pb.SettleStatus_SETTLE_STATUS_UNSPECIFIED:
			return
		case pb.SettleStatus_SETTLE_STATUS_DONE:
			f = nil
		}
	}
	if status != pb.SettleStatus_SETTLE_STATUS_DONE || run.GetWantResult() || s.conduct.Unasked {
		rs.add(first, count, status, f)
	}
}

// results in order; those that are alike are joined.
type results []*pb.SettleResult

func (rs *results) add(first, count uint64, status pb.SettleStatus, f *pb.Fault) {
	if n := len(*rs); n > 0 {
		last := (*rs)[n-1]
		if last.GetFirst() > 0 && last.GetFirst()+last.GetCount() == first && last.GetStatus() == status && last.GetFault() == nil && f == nil {
			last.Count += count
			return
		}
	}
	*rs = append(*rs, &pb.SettleResult{First: first, Count: count, Status: status, Fault: f})
}
