// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// readHeaders takes the count and the journal's row off the headers. The row's
// header is the host's own: neither the handler nor a copy sees it.
func (s *settlement) readHeaders() {
	h := s.d.Message.Headers
	if len(h) == 0 {
		return
	}
	var bad bool
	if s.c.Attempt.Copies, bad = h.Count(); bad {
		v, _ := h.Get(core.CountHeader)
		s.bad = bytes.Clone(v)
		if s.bad == nil {
			s.bad = []byte{}
		}
	}
	if row, ok := h.Get(core.JournalHeader); ok {
		s.row = string(row)
		s.d.Message.Headers = h.Without(core.JournalHeader)
	}
}

// targets reports whether the plan has a step about t.
func targets(p *core.Plan, t core.Target) bool {
	for i := range p.N {
		if p.Steps[i].To == t {
			return true
		}
	}
	return false
}

// waits reports whether the plan has a copy that waits.
func waits(p *core.Plan) bool {
	for i := range p.N {
		if p.Steps[i].Do == core.ActPublishLater {
			return true
		}
	}
	return false
}

// make makes the copy that the plan speaks of, which shares no memory with the
// delivery.
func (s *settlement) make() {
	var step *core.Step
	for i := range s.plan.N {
		if t := &s.plan.Steps[i]; t.To != core.TargetNone && t.Do != core.ActForget && t.Do != core.ActForgetLater {
			step = t
			break
		}
	}
	if step == nil {
		return
	}
	m := s.d.Message
	route, purpose := &s.c.Retry, transportpb.Purpose_PURPOSE_RETRY
	if step.To == core.TargetDead {
		route, purpose = &s.c.Dead, transportpb.Purpose_PURPOSE_DEAD_LETTER
		cause := s.cause(route)
		if cause == nil && s.l.o.MaxElapsed > 0 {
			// Without its time, who reads the dead letter could not tell that it is not
			// the first failure there.
			m.Headers = m.Headers.Without(core.FirstFailureHeader)
		}
		m.Headers = m.Headers.ForDeadLetter(step.Count, cause, route.Caps, len(m.Payload))
	} else {
		m.Headers = m.Headers.ForCopy(make(core.Headers, 0, len(m.Headers)+1), step.Count)
		if !s.failed.IsZero() {
			m.Headers = m.Headers.WithFirstFailure(s.failed)
		}
	}
	m.Name = route.To.Name
	s.out = frame.Outgoing{
		Message: m.Clone(),
		Purpose: uint8(purpose),
		Carry:   bytes.Clone(s.f.item().Carry),
	}
	if route.Caps.Dedups {
		s.out.DedupID = s.dedupID(step)
	}
}

// cause is what is said on a dead letter: where headers are native, or where it
// is asked for.
func (s *settlement) cause(to *core.Route) *core.DeadLetter {
	native := to.Caps.Headers == core.HeadersNativeText || to.Caps.Headers == core.HeadersNativeBytes
	if !native && !s.l.o.Causes {
		return nil
	}
	d := &core.DeadLetter{
		Endpoint: s.l.o.Endpoint, Subscription: s.l.o.Subscription,
		Attempts: s.d.Number, Time: time.Now(), Stack: s.said.Stack, FirstFailure: s.failed,
	}
	if err := s.said.Err; err != nil {
		d.Error, d.Reason = typeOf(err), err.Error()
	}
	return d
}

// dedupID is the same for every try of one copy, and, where the source gives an
// identity, for the copy of the same attempt after a redelivery.
func (s *settlement) dedupID(step *core.Step) string {
	if len(s.d.Identity) == 0 {
		s.l.mu.Lock()
		s.l.copied++
		n := s.l.copied
		s.l.mu.Unlock()
		return s.l.unique + "-" + strconv.FormatUint(n, 36)
	}
	h := fnv.New128a()
	for _, part := range []string{
		s.l.o.Endpoint, s.l.o.Subscription, string(s.d.Identity),
		step.To.String(), strconv.FormatUint(step.Count, 10),
	} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil))
}
