// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/internal/transportpb"
)

// identify checks that a message is not delivered again while a delivery of it
// is unsettled and not void; the lock is held.
func (s *Sub) identify(d *Delivery) {
	if len(d.Identity) == 0 {
		return
	}
	if s.identities == nil {
		s.identities = map[string]*Delivery{}
	}
	// Sources number their messages within a name or a scope.
	id := d.Message.Name + "\x00" + d.Scope + "\x00" + string(d.Identity)
	if old := s.identities[id]; old != nil && !old.decided && !old.void {
		s.t.Errorf("delivery %d has the identity of delivery %d, which is unsettled and was not said to be void", d.ID, old.ID)
	}
	s.identities[id] = d
}

// sought takes the answer to a seek; the lock is held.
func (s *Sub) sought(r *transportpb.Sought) {
	s.soughts = append(s.soughts, r)
	if r.GetFault() != nil {
		return
	}
	switch next := uint64(len(s.all)) + 1; {
	case r.GetNext() > next:
		s.t.Errorf("sought names %d as the first delivery from the new position, and %d were sent", r.GetNext(), len(s.all))
	default:
		s.ranOut(func(d *Delivery) bool { return d.ID < r.GetNext() }, false)
	}
}

// ranOut notes that deliveries ended without a verdict; the lock is held.
func (s *Sub) ranOut(named func(d *Delivery) bool, returns bool) {
	for _, v := range s.verdicts[s.answered:] {
		if v.id > 0 && v.id <= uint64(len(s.all)) && named(s.all[v.id-1]) {
			v.voided = true
		}
	}
	for _, d := range s.all {
		if !named(d) || d.void {
			continue
		}
		if !d.decided {
			s.open--
			s.bytes -= d.weight
		}
		d.void, d.voidedAt, d.voidedWhen, d.returns = true, uint64(len(s.all)), time.Now(), returns
	}
}

// await waits at most so long for ok, which is called with the lock held.
func (s *Sub) await(limit time.Duration, ok func() bool) bool {
	ctx, cancel := context.WithTimeout(s.t.Ctx, limit)
	defer cancel()
	return eventually(ctx, s.change, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return ok()
	})
}
