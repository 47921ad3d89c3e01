// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// packMost is the largest payload that is packed: what is larger costs more to
// copy than it saves.
const packMost = 4 << 10

// parcel is a copy while it waits: what its settlement is made of again when it
// is due. Its plan is not kept, but the case, from which the same plan is
// decided.
type parcel struct {
	l      *Lane
	scene  *scene
	due    time.Duration // since Waiting.base
	packed string        // the copy, unless more has it
	more   *more         // nil = nothing
	cur    core.Cursor   // without its plan

	// The rest of the case.
	attempt            core.Attempt
	after, held, floor time.Duration

	number         uint64
	generation, id uint64
	reserved       int64
	did            did
	purpose        uint8
	released       bool
	marked         bool
	stray          bool
}

// scene is the part of a case that many copies have in common.
type scene struct {
	c core.Case // without its numbers
	n int       // copies that have it
}

// sceneBytes is what a scene counts.
const sceneBytes = 1 << 10

// more is what few copies have, and those that Finished is told of.
type more struct {
	out    *frame.Outgoing // a large one
	stored string
	row    string
	trace  []core.Done

	said                Said
	clone               *cloned
	last                bool
	published, received time.Time
	snoozes             int
	unkeyed             error
}

// common splits a case into what copies have in common and the numbers of p.
func (p *parcel) common(c core.Case) core.Case {
	p.attempt, p.after, p.held, p.floor = c.Attempt, c.Outcome.After, c.Held, c.Floor
	c.Attempt, c.Outcome.After, c.Held, c.Floor = core.Attempt{}, 0, 0, 0
	return c
}

// restored is the case again.
func (p *parcel) restored() core.Case {
	c := p.scene.c
	c.Attempt, c.Outcome.After, c.Held, c.Floor = p.attempt, p.after, p.held, p.floor
	return c
}

// layBy makes the record of s, which is about to wait. Its scene is still to be
// set, to what layBy returns.
func (s *settlement) layBy() (*parcel, core.Case) {
	p := &parcel{
		l: s.l, cur: s.cur.On(nil), number: s.d.Number, generation: s.generation, id: s.id,
		reserved: s.reserved, did: s.did, purpose: s.out.Purpose,
		released: s.released, marked: s.marked, stray: s.stray,
	}
	c := p.common(s.c)
	m := more{stored: s.stored, row: s.row, trace: s.trace}
	used := m.stored != "" || m.row != "" || m.trace != nil
	if s.l.o.Finished != nil && !s.stray {
		m.said, m.clone = s.said, s.clone
		m.said.Publishes, m.said.Failed = nil, nil
		m.last, m.published, m.received, m.snoozes = s.d.Last, s.d.Published, s.d.Received, s.d.Snoozes
		m.unkeyed = s.d.Unkeyed
		n := len(m.said.Stack) + len(m.said.Thrown)
		if k := m.clone; k != nil {
			n += frame.Weight(&k.message) + len(k.scope) + len(k.identity) + len(k.position)
		}
		p.reserved += rounded(n)
		used = true
	}
	if len(s.out.Message.Payload) > packMost || s.out.Options != nil || s.out.DeliverAfter != 0 {
		out := s.out
		m.out, used = &out, true
	} else {
		p.packed = pack(&s.out)
	}
	if used {
		p.reserved += waitingMore
		p.more = &m
	}
	return p, c
}

// takeUp makes the settlement again, which is about to be published.
func (p *parcel) takeUp() *settlement {
	s := p.l.settlement()
	s.left, s.waiting, s.decided = true, true, true
	s.c, s.of = p.restored(), nil
	core.Decide(&p.l.o.Policy, &s.c, &s.plan)
	s.cur = p.cur.On(&s.plan)
	for i := range s.plan.N {
		if s.plan.Steps[i].Do == core.ActPublishLater {
			s.step = s.plan.Steps[i] // there is one
			break
		}
	}
	s.d.Attempt, s.d.Number, s.generation, s.id = p.attempt, p.number, p.generation, p.id
	s.reserved, s.did = p.reserved, p.did
	s.released, s.marked, s.stray = p.released, p.marked, p.stray
	if m := p.more; m != nil {
		s.stored, s.row, s.trace, s.said, s.clone = m.stored, m.row, m.trace, m.said, m.clone
		s.d.Last, s.d.Published, s.d.Received, s.d.Snoozes = m.last, m.published, m.received, m.snoozes
		s.d.Unkeyed = m.unkeyed
		if m.out != nil {
			s.out = *m.out
			return s
		}
	}
	s.out = unpack(p.packed)
	s.out.Purpose = p.purpose
	return s
}

// plain reports whether nothing but the message is lost with the copy: nobody is
// told, and no row of the journal belongs to it.
func (p *parcel) plain() bool {
	m := p.more
	return m == nil || m.stored == "" && m.row == "" && m.trace == nil && (p.stray || p.l.o.Finished == nil)
}

// cuttable reports whether a stop does not wait for the copy.
func (p *parcel) cuttable(which cutting) bool {
	return which == cutAll || p.more != nil && p.more.stored != "" || p.scene.c.Retry.Caps.Retains == core.RetainProcess
}
