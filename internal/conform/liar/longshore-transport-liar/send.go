// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"time"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

const (
	frameMessages = 256
	frameBytes    = 128 << 10
)

// send sends answers, deliveries within the window, and Ended, until the host
// has nothing to say any more and has heard everything.
func (s *subscription) send() error {
	for {
		out, err := s.wait()
		if err != nil || out == nil {
			return err
		}
		for _, m := range out {
			if err := s.stream.SendMsg(m); err != nil {
				return err
			}
		}
	}
}

// wait returns what is to be sent next. Answers come first, so that they stand
// right behind what was sent before them. Nothing and no error is the end.
func (s *subscription) wait() ([]*pb.SubscribeResponse, error) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	for {
		receiving := s.mayReceive()
		if !s.stopped {
			s.rewind()
		}
		if len(s.held) > 0 && (!receiving || s.read) {
			runs := s.held
			s.held = nil
			s.settle(runs)
		}
		if s.broken != nil {
			return nil, s.broken
		}
		if len(s.outbox) > 0 {
			out := s.outbox
			s.outbox = nil
			return out, nil
		}
		if receiving {
			if frame := s.frame(); frame != nil {
				if runs := s.held; runs != nil { // the wait is over
					s.held = nil
					s.settle(runs)
				}
				if s.conduct.CaughtUp {
					return []*pb.SubscribeResponse{frame, {Part: &pb.SubscribeResponse_CaughtUp{CaughtUp: &pb.CaughtUp{}}}}, nil
				}
				return []*pb.SubscribeResponse{frame}, nil
			}
		}
		if s.stopped && !s.ended {
			var f *pb.Fault
			if s.conduct.EndedFault {
				f = fault(unavailable, "receive: it was stopped")
			}
			s.end(f)
			continue
		}
		if s.read {
			return nil, nil
		}
		if receiving {
			s.p.waiting.Add(1)
		}
		s.q.changed.Wait()
		if receiving {
			s.p.waiting.Add(-1)
		}
	}
}

// end says that intake has ended; the lock is held.
func (s *subscription) end(f *pb.Fault) {
	s.stopped, s.ended = true, true
	if !s.conduct.NoEnded {
		s.outbox = append(s.outbox, &pb.SubscribeResponse{Part: &pb.SubscribeResponse_Ended{Ended: &pb.Ended{Fault: f}}})
	}
}

// mayReceive says whether the next delivery may be sent.
func (s *subscription) mayReceive() bool {
	lies := s.conduct.AfterStop && s.ended && !s.read
	return (!s.stopped || lies) && s.room(0, 0)
}

// room says whether the window is open behind so many further messages.
func (s *subscription) room(messages int, bytes uint64) bool {
	w := s.window
	if w == nil {
		if !s.conduct.BeforeCredit || s.next > 1 {
			return false
		}
		w = &pb.Credit{Messages: 1, Bytes: math.MaxInt64}
	}
	if s.conduct.Strict {
		if size, ok := s.q.peek(); ok && s.bytes+bytes+size > w.GetBytes() {
			return false
		}
	}
	return s.messages+uint64(messages) < w.GetMessages() && s.bytes+bytes < w.GetBytes()
}

// frame takes what is ready and fits into a frame, nil where there is nothing;
// the lock is held.
func (s *subscription) frame() *pb.SubscribeResponse {
	limit := frameMessages
	if s.conduct.FrameSize > 0 {
		if limit = s.conduct.FrameSize; s.gathers(limit) {
			return nil
		}
	}
	var taken []*entry
	bytes := uint64(0)
	for len(taken) < limit && s.room(len(taken), bytes) {
		size, ok := s.q.peek()
		if !ok || len(taken) > 0 && bytes+size > frameBytes {
			break
		}
		e := s.q.take(s.conduct.Swaps)
		taken = append(taken, e)
		bytes += e.size
	}
	if len(taken) == 0 {
		return nil
	}
	if err := s.q.counted(taken); err != nil {
		s.end(passing(unavailable, "receive: write the journal: %v", err))
		return nil
	}
	ds := &pb.Deliveries{}
	for _, e := range taken {
		ds.Items = append(ds.Items, s.deliver(e))
	}
	return &pb.SubscribeResponse{Part: &pb.SubscribeResponse_Deliveries{Deliveries: ds}}
}

// deliver gives a message its id.
func (s *subscription) deliver(e *entry) *pb.Delivery {
	id := s.next
	if s.conduct.ID != nil {
		id = s.conduct.ID(id, len(s.unsettled))
	}
	s.next = id + 1
	s.unsettled[id] = e
	s.messages++
	s.bytes += e.size
	s.hire(id, e)
	d := &pb.Delivery{
		Id: id, Name: s.q.name, Headers: e.message.GetHeaders(), Payload: e.message.GetPayload(),
		Attempt: e.count, Identity: e.identity, PublishedAt: e.stored,
	}
	if s.conduct.Attempt != nil {
		d.Attempt = s.conduct.Attempt(d.GetAttempt())
	}
	if s.conduct.Deliver != nil {
		s.conduct.Deliver(d)
	}
	return d
}

// gathers is the patience of the lie that fills frames beyond their limit.
func (s *subscription) gathers(n int) bool {
	const patience = 100 * time.Millisecond
	if len(s.q.ready.all) >= n || time.Since(s.q.placed) >= patience {
		return false
	}
	time.AfterFunc(patience, s.q.changed.Broadcast)
	return true
}
