// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// frame stores messages in order and returns their receipts; those of stalled
// ones are left out.
func (s *publisher) frame(items []*pb.Outgoing) []*pb.Receipt {
	var receipts []*pb.Receipt
	for i, o := range items {
		if i > 0 && s.conduct.FirstAlone {
			receipts = append(receipts, &pb.Receipt{Id: o.GetId(), Status: pb.ReceiptStatus_RECEIPT_STATUS_CONFIRMED})
			continue
		}
		if r := s.take(o); r != nil {
			receipts = append(receipts, r)
		}
	}
	if s.conduct.Receipts != nil {
		receipts = s.conduct.Receipts(receipts)
	}
	return receipts
}

// take stores one message, nil: it is not answered.
func (s *publisher) take(o *pb.Outgoing) *pb.Receipt {
	if f := s.refusal(o); f != nil {
		return refused(o, f)
	}
	if stalls, f := s.stalls(o); f != nil {
		return refused(o, f)
	} else if stalls {
		return nil
	}
	confirmed := &pb.Receipt{Id: o.GetId(), Status: pb.ReceiptStatus_RECEIPT_STATUS_CONFIRMED}
	if s.overLimits(o) != nil {
		return confirmed // a lie
	}
	if s.conduct.Keep != nil {
		if o = s.conduct.Keep(o); o == nil {
			return confirmed
		}
	}
	q, ok := s.queues[o.GetName()]
	if !ok {
		var f *pb.Fault
		if q, f = s.p.store.get(o.GetName()); f != nil {
			return refused(o, f)
		}
		s.queues[o.GetName()] = q
	}
	if s.conduct.StoresAfter > 0 {
		s.later(q, o)
		return confirmed
	}
	if err := s.put(q, o); errors.Is(err, errClosed) {
		return refused(o, fault(closed, "publish: the endpoint is closed"))
	} else if err != nil {
		return refused(o, passing(unavailable, "publish: write the journal: %v", err))
	}
	return confirmed
}

// put stores a message, as often as the conduct says.
func (s *publisher) put(q *queue, o *pb.Outgoing) error {
	delay := time.Duration(o.GetDeliverAfter())
	if s.conduct.NoDelays {
		delay = 0
	}
	if s.conduct.WaitsUnread {
		q.waitRead(s.stream.Context())
	}
	err := q.put(o, delay, !s.conduct.NoDedup)
	for range s.conduct.Copies {
		err = errors.Join(err, q.put(o, delay, false))
	}
	return err
}

// waitRead is the lie of a queue that waits for its readers.
func (q *queue) waitRead(ctx context.Context) {
	const full = 500
	defer context.AfterFunc(ctx, q.changed.Broadcast)()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.ready.all) >= full && q.journal != nil && ctx.Err() == nil {
		q.changed.Wait()
	}
}

// refusal says why a message cannot be taken.
func (s *publisher) refusal(o *pb.Outgoing) *pb.Fault {
	s.mu.Lock()
	over := s.closed
	s.mu.Unlock()
	if over {
		return fault(closed, "publish: the endpoint is closed")
	}
	if o.GetName() == "" {
		return fault(invalid, "publish: the name is empty; name the queue")
	}
	if wrong := readOptions(o.GetOptions()); len(wrong) > 0 {
		f := fault(invalid, "publish: the options are wrong")
		f.Diagnostics = wrong
		return f
	}
	if o.GetDeliverAfter() >= int64(maxDelay) {
		return fault(unsupported, "publish: deliver_after is %v, it has to be below %v", time.Duration(o.GetDeliverAfter()), maxDelay)
	}
	if s.conduct.NoLimits {
		return nil
	}
	return s.overLimits(o)
}

// overLimits says which limit a message is over.
func (s *publisher) overLimits(o *pb.Outgoing) *pb.Fault {
	if n := weight(o); n > maxBytes {
		return fault(tooLarge, "publish: payload and headers have %d bytes, the limit is %d", n, maxBytes)
	}
	if n := len(o.GetHeaders()); n > maxHeaders {
		return fault(tooLarge, "publish: the message has %d headers, the limit is %d", n, maxHeaders)
	}
	return nil
}

func refused(o *pb.Outgoing, f *pb.Fault) *pb.Receipt {
	return &pb.Receipt{Id: o.GetId(), Status: pb.ReceiptStatus_RECEIPT_STATUS_REFUSED, Fault: f}
}

// stalls says whether a message is for the destination that never answers, and
// notes it.
func (s *publisher) stalls(o *pb.Outgoing) (bool, *pb.Fault) {
	name := s.p.settings.stalled // set before Connect
	s.mu.Lock()
	defer s.mu.Unlock()
	if blocked := s.conduct.StallsAll && len(s.stalled) > 0; !blocked && (name == "" || o.GetName() != name) {
		return false, nil
	}
	if len(s.stalled) == maxStalled {
		return true, passing(exhausted, "publish: %d messages wait for %s, which does not answer", maxStalled, name)
	}
	s.stalled = append(s.stalled, o.GetId())
	return true, nil
}

// late is a message that is confirmed and not stored.
type late struct {
	q  *queue
	o  *pb.Outgoing
	at time.Time
}

// later stores a message behind its receipt.
func (s *publisher) later(q *queue, o *pb.Outgoing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, late{q, o, time.Now().Add(s.conduct.StoresAfter)})
	time.AfterFunc(s.conduct.StoresAfter, func() { s.storePending(time.Now()) })
}

// storePending stores what is due at a time, in order.
func (s *publisher) storePending(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.pending) > 0 && !s.pending[0].at.After(now) {
		if err := s.put(s.pending[0].q, s.pending[0].o); err != nil {
			logf(levelError, "store late: %v", err)
		}
		s.pending = s.pending[1:]
	}
}

// flush stores what is confirmed and not stored, or loses it.
func (s *publisher) flush() {
	if s.conduct.LosesLast {
		s.mu.Lock()
		s.pending = nil
		s.mu.Unlock()
	}
	s.storePending(time.Now().Add(s.conduct.StoresAfter))
}
