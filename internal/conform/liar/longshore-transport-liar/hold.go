// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// longestHold bounds the setting.
const longestHold = time.Hour

// hold is how long a delivery may stay unsettled, 0 = for ever.
func (p *plugin) hold() time.Duration {
	d, _ := time.ParseDuration(p.settings.hold) // checked by Configure; "" is 0
	return d
}

// hire begins the hold of a delivery; the lock is held, as in all of this file
// but expire and late.
func (s *subscription) hire(id uint64, e *entry) {
	hold := s.hold
	if hold == 0 || s.conduct.Holds < 0 {
		return
	}
	if s.conduct.Holds > 0 {
		hold = s.conduct.Holds
	}
	e.until = time.Now().Add(hold)
	time.AfterFunc(hold, func() { s.expire(id, e) })
}

// extend prolongs a hold from now on.
func (s *subscription) extend(e *entry, hold time.Duration) (pb.SettleStatus, *pb.Fault) {
	switch {
	case s.hold == 0:
		return cannot("a queue has no holds")
	case hold >= s.hold && !s.conduct.AnyHold:
		return cannot("a hold has to be below " + s.hold.String())
	case !s.conduct.IgnoresExtend:
		e.until = time.Now().Add(max(hold, 0))
	}
	return pb.SettleStatus_SETTLE_STATUS_DONE, nil
}

// expire takes a delivery back whose hold has ended.
func (s *subscription) expire(id uint64, e *entry) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.over || s.unsettled[id] != e {
		return
	}
	if left := time.Until(e.until); left > 0 {
		time.AfterFunc(left, func() { s.expire(id, e) })
		return
	}
	delete(s.unsettled, id)
	s.messages--
	s.bytes -= e.size
	void := &pb.Void{First: id, Count: 1, Returns: true}
	if s.conduct.Void != nil {
		void = s.conduct.Void(void)
	}
	if void != nil {
		s.void(void)
	}
	_ = s.q.back(e, 0)
}

// late hands a message back that was to be handed back long ago.
func (s *subscription) late(e *entry) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	_ = s.q.back(e, 0)
}
