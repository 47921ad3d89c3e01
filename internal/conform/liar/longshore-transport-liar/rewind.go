// SPDX-License-Identifier: Apache-2.0

package main

import pb "github.com/longshore-go/longshore/internal/transportpb"

// requeueRewinds is the value of the setting.
const requeueRewinds = "rewinds"

// rewinds reports whether what is handed back takes the order back to it.
func (p *plugin) rewinds() bool { return p.settings.requeue == requeueRewinds }

// rewind makes void what was delivered from behind the next message, if that comes
// again; the lock is held.
func (s *subscription) rewind() {
	if !s.p.rewinds() || s.conduct.NoRewind || len(s.q.ready.all) == 0 || s.q.journal == nil {
		return
	}
	next := s.q.ready.all[0]
	var behind []uint64
	far := false
	for _, id := range s.ids() {
		if e := s.unsettled[id]; e.seq > next.seq {
			behind, far = append(behind, id), true
		} else if s.conduct.RewindsAll {
			behind = append(behind, id)
		}
	}
	if !far {
		return
	}
	for _, id := range behind {
		e := s.unsettled[id]
		s.forget(id, e, pb.VerdictKind_VERDICT_KIND_REQUEUE)
		s.void(&pb.Void{First: id, Count: 1, Returns: true})
		if s.conduct.LosesVoid {
			_ = s.q.done(e)
		} else {
			_ = s.q.back(e, 0)
		}
	}
}
