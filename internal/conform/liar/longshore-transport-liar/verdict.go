// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// verdict carries out one verdict; the lock is held. Whatever becomes of it, the
// delivery is settled or forgotten and its credit returns, but for EXTEND.
func (s *subscription) verdict(id uint64, run *pb.VerdictRun) (pb.SettleStatus, *pb.Fault) {
	kind := run.GetKind()
	e, there := s.unsettled[id]
	if !there {
		if s.conduct.Late != nil && id > 0 {
			return s.conduct.Late(kind), nil
		}
		return pb.SettleStatus_SETTLE_STATUS_STALE, nil
	}
	if kind == pb.VerdictKind_VERDICT_KIND_EXTEND {
		return s.extend(e, time.Duration(run.GetHold()))
	}
	s.forget(id, e, kind)
	if s.conduct.DropsLast && s.ended {
		s.released = append(s.released, e)
		return pb.SettleStatus_SETTLE_STATUS_DONE, nil
	}
	if s.conduct.Effect != nil {
		kind = s.conduct.Effect(kind)
	}
	var err error
	switch kind {
	case pb.VerdictKind_VERDICT_KIND_ACK:
		if older := s.ids(); s.conduct.InOrder && len(older) > 0 && older[0] < id {
			s.released = append(s.released, e)
			return pb.SettleStatus_SETTLE_STATUS_DONE, nil
		}
		err = s.q.done(s.formerly(id, e))
		s.takeNext(id)
	case pb.VerdictKind_VERDICT_KIND_REJECT:
		err = s.q.done(e)
	case pb.VerdictKind_VERDICT_KIND_REQUEUE:
		delay := time.Duration(run.GetDelay())
		if delay >= maxDelay {
			s.released = append(s.released, e)
			return cannot("a delay has to be below " + maxDelay.String())
		}
		switch {
		case s.conduct.NoDelay:
			delay = 0
		case s.conduct.Stretch > 0:
			delay *= s.conduct.Stretch
		}
		if s.conduct.SameCount {
			e.count--
		}
		if s.conduct.LazyRequeue && s.hold > 0 {
			time.AfterFunc(time.Until(e.until), func() { s.late(e) })
			return pb.SettleStatus_SETTLE_STATUS_DONE, nil
		}
		err = s.q.back(e, delay)
	case pb.VerdictKind_VERDICT_KIND_RELEASE:
		s.released = append(s.released, e)
	default:
		if s.conduct.AcksUnknown {
			_ = s.q.done(e)
			return cannot("there is no such verdict")
		}
		s.released = append(s.released, e)
		return cannot("there is no such verdict")
	}
	if err != nil {
		s.released = append(s.released, e)
		if errors.Is(err, errClosed) {
			return pb.SettleStatus_SETTLE_STATUS_FAILED, fault(closed, "settle: the endpoint is closed")
		}
		return pb.SettleStatus_SETTLE_STATUS_FAILED, passing(unavailable, "settle: write the journal: %v", err)
	}
	return pb.SettleStatus_SETTLE_STATUS_DONE, nil
}

// formerly is the message that the lie of an id takes for e.
func (s *subscription) formerly(id uint64, e *entry) *entry {
	if of, ok := s.p.former.Load(s.q.name); ok && s.conduct.Former {
		if old := of.(map[uint64]*entry)[id]; old != nil {
			return old
		}
	}
	return e
}

// forget takes a delivery off the window.
func (s *subscription) forget(id uint64, e *entry, kind pb.VerdictKind) {
	delete(s.unsettled, id)
	if kind == pb.VerdictKind_VERDICT_KIND_RELEASE && s.conduct.KeepsCredit {
		return
	}
	s.messages--
	s.bytes -= e.size
}

// takeNext is the lie of an ack that takes another delivery along.
func (s *subscription) takeNext(id uint64) {
	if !s.conduct.TakesNext {
		return
	}
	for _, other := range s.ids() {
		if other > id {
			_ = s.q.done(s.unsettled[other])
			s.forget(other, s.unsettled[other], pb.VerdictKind_VERDICT_KIND_ACK)
			return
		}
	}
}

func cannot(why string) (pb.SettleStatus, *pb.Fault) {
	return pb.SettleStatus_SETTLE_STATUS_UNSUPPORTED, fault(unsupported, "settle: %s", why)
}
