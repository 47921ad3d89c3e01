// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"sync"

	"google.golang.org/grpc"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// subscription counts. Its reader never blocks, its sender keeps the window,
// and both answer through one lock, since a stream takes one message at a time.
type subscription struct {
	stream  grpc.ServerStream
	sending sync.Mutex

	mu        sync.Mutex
	changed   *sync.Cond
	window    *pb.Credit
	unsettled map[uint64]uint64 // id to bytes
	bytes     uint64
	next      uint64
	stopped   bool // no more intake
	gone      bool // nor anything else
}

func subscribe(stream grpc.ServerStream) error {
	first := &pb.SubscribeRequest{}
	if err := stream.RecvMsg(first); err != nil {
		return err
	}
	if first.GetStart() == nil {
		return errFirst()
	}
	s := &subscription{stream: stream, window: &pb.Credit{}, unsettled: map[uint64]uint64{}, next: 1}
	s.changed = sync.NewCond(&s.mu)
	if err := s.send(&pb.SubscribeResponse{Part: &pb.SubscribeResponse_Started{Started: &pb.Started{Profiles: profile()}}}); err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() { sent <- s.count() }()
	err := s.read()
	s.mu.Lock()
	s.stopped, s.gone = true, err != nil
	s.changed.Broadcast()
	s.mu.Unlock()
	if sendErr := <-sent; err == nil {
		err = sendErr
	}
	return err
}

func (s *subscription) send(m *pb.SubscribeResponse) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.stream.SendMsg(m)
}

// read takes what the host says until it half-closes.
func (s *subscription) read() error {
	for {
		r := &pb.SubscribeRequest{}
		if err := s.stream.RecvMsg(r); err != nil {
			return orderly(err)
		}
		var answer *pb.Settled
		s.mu.Lock()
		switch part := r.GetPart().(type) {
		case *pb.SubscribeRequest_Credit:
			s.window = part.Credit
		case *pb.SubscribeRequest_Settle:
			answer = s.settle(part.Settle.GetRuns())
		case *pb.SubscribeRequest_Stop:
			s.stopped = true
		}
		s.changed.Broadcast()
		s.mu.Unlock()
		if len(answer.GetResults()) > 0 {
			if err := s.send(&pb.SubscribeResponse{Part: &pb.SubscribeResponse_Settled{Settled: answer}}); err != nil {
				return err
			}
		}
	}
}

// settle carries out verdicts and returns what the host must hear of them; the
// lock is held.
func (s *subscription) settle(runs []*pb.VerdictRun) *pb.Settled {
	out := &pb.Settled{}
	for _, run := range runs {
		for id := run.GetFirst(); id < run.GetFirst()+max(run.GetCount(), 1); id++ {
			result := pb.SettleStatus_SETTLE_STATUS_UNSUPPORTED
			bytes, there := s.unsettled[id]
			switch {
			case !there:
				result = pb.SettleStatus_SETTLE_STATUS_STALE
			case run.GetKind() == pb.VerdictKind_VERDICT_KIND_ACK, run.GetKind() == pb.VerdictKind_VERDICT_KIND_RELEASE:
				result = pb.SettleStatus_SETTLE_STATUS_DONE
			}
			if there && run.GetKind() != pb.VerdictKind_VERDICT_KIND_EXTEND {
				delete(s.unsettled, id)
				s.bytes -= bytes
			}
			if result != pb.SettleStatus_SETTLE_STATUS_DONE || run.GetWantResult() {
				out.Results = append(out.Results, &pb.SettleResult{First: id, Count: 1, Status: result})
			}
		}
	}
	return out
}

// count delivers numbers within the window until it is stopped, and says so.
func (s *subscription) count() error {
	for {
		s.mu.Lock()
		for !s.stopped && (uint64(len(s.unsettled)) >= s.window.GetMessages() || s.bytes >= s.window.GetBytes()) {
			s.changed.Wait()
		}
		if s.stopped {
			gone := s.gone
			s.mu.Unlock()
			if gone {
				return nil
			}
			return s.send(&pb.SubscribeResponse{Part: &pb.SubscribeResponse_Ended{Ended: &pb.Ended{}}})
		}
		d := &pb.Delivery{Id: s.next, Name: "numbers", Payload: strconv.AppendUint(nil, s.next, 10)}
		s.unsettled[d.Id] = uint64(len(d.Payload))
		s.bytes += uint64(len(d.Payload))
		s.next++
		s.mu.Unlock()
		ds := &pb.Deliveries{Items: []*pb.Delivery{d}}
		if err := s.send(&pb.SubscribeResponse{Part: &pb.SubscribeResponse_Deliveries{Deliveries: ds}}); err != nil {
			return err
		}
	}
}
