// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

func rewindCase() Case {
	return Case{
		ID: "settle/rewind", Section: sectionCapabilities,
		Claim:   "Where a requeue rewinds, what was delivered from behind it in its scope is void, then comes again in order; all else stays as it is.",
		Applies: applies(reads, with("a requeue that rewinds", rewinds)), Needs: feeds, Run: settleRewind,
	}
}

// settleRewind hands back the second of a scope in a full window, with the third
// acked and more messages behind the window.
func settleRewind(t *Trial) {
	const window, messages = 8, 12
	p := t.Connected()
	s := p.Open(t.registration())
	s.Credit(window, windowBytes)
	fed := time.Now() // no hold begins before
	keys := t.Feed(p, messages)
	number := map[string]int{}
	for i, k := range keys {
		number[k] = i
	}
	ds := s.takeOf(number, window)
	scope, others := t.longest(ds)
	if len(scope) < 4 {
		t.Skipf("only %d of %d messages came in one scope with a profile whose requeue rewinds", len(scope), len(ds))
	}
	back, acked, behind := scope[1], scope[2], scope[3:]
	others = append(others, scope[0])
	limit := t.Subject.Wait
	if hold := back.Caps.MaxHold; hold > 0 {
		if time.Since(fed) > hold/4 {
			t.Skipf("this machine was too slow for a hold of %v", hold)
		}
		limit = min(limit, hold/2)
	}
	s.Credit(0, 0) // an ack makes room for one from behind the window
	s.Barrier()
	settled := s.done(core.VerdictAck, acked)
	if !s.expect(back, frame.VerdictRun{Kind: core.VerdictRequeue}, frame.SettleDone) {
		s.leave()
		return
	}
	s.awaitVoid(behind, limit)
	s.rewound(back, behind, others, limit)
	settled = append(settled, s.done(core.VerdictAck, others...)...)
	s.Credit(window, windowBytes)

	again := s.inOrder(back, number, settled)
	old := append([]*Delivery{back}, behind...)
	came := make([]*Delivery, len(old))
	for i, d := range old {
		came[i] = again[d.Key]
	}
	s.renewed(old[:1], came[:1], byRequeue)
	s.renewed(behind, came[1:], byItself)
	s.voidFirst(behind, came[1:])
	s.absent(keysOf(settled), "ACK was DONE")
	s.leave()
}

// takeOf takes n deliveries of messages that the case has fed, and lets others go.
func (s *Sub) takeOf(number map[string]int, n int) []*Delivery {
	var ds []*Delivery
	for len(ds) < n {
		d := s.Next()
		if _, own := number[d.Key]; own {
			ds = append(ds, d)
		} else {
			s.extra([]*Delivery{d})
		}
	}
	return ds
}

// longest returns the deliveries of the scope of which most came with a requeue that
// rewinds, and those of others.
func (t *Trial) longest(ds []*Delivery) (scope, others []*Delivery) {
	n, most := map[string]int{}, ""
	for _, d := range ds {
		if d.Caps.Rewinds {
			if n[d.Scope]++; n[d.Scope] > n[most] {
				most = d.Scope
			}
		}
	}
	for _, d := range ds {
		if d.Caps.Rewinds && d.Scope == most {
			scope = append(scope, d)
		} else {
			others = append(others, d)
		}
	}
	return scope, others
}

// rewound expects that the requeue of back made behind void and no others.
func (s *Sub) rewound(back *Delivery, behind, others []*Delivery, limit time.Duration) {
	for _, d := range behind {
		s.mu.Lock()
		void, returns := d.void, d.returns
		s.mu.Unlock()
		switch {
		case !void:
			s.t.Errorf("delivery %d was not said to be void within %v of the REQUEUE of delivery %d, which stands before it in its scope: a requeue takes the scope back",
				d.ID, limit, back.ID)
		case !returns:
			s.t.Errorf("the void of delivery %d says that it does not come back: what stands behind a REQUEUE does", d.ID)
		}
	}
	for _, d := range others {
		if s.voided(d) {
			s.t.Errorf("delivery %d was said to be void behind the REQUEUE of delivery %d: it does not stand behind it in its scope", d.ID, back.ID)
		}
	}
}

// rewoundOf returns deliveries that have no verdict, in place of those that a rewind
// made void what came again.
func (s *Sub) rewoundOf(ds []*Delivery) []*Delivery {
	var still, old []*Delivery
	for _, d := range ds {
		if d.Caps.Rewinds && s.voided(d) {
			old = append(old, d)
		} else {
			still = append(still, d)
		}
	}
	again := s.again(old, nil, "")
	s.renewed(old, again, byItself)
	return append(still, present(again)...)
}

// inOrder takes and acks what comes until each message that is not settled has come,
// and returns the delivery of each. In the scope of back it comes in order.
func (s *Sub) inOrder(back *Delivery, number map[string]int, settled []*Delivery) map[string]*Delivery {
	again, left := map[string]*Delivery{}, map[string]bool{}
	for k := range number {
		left[k] = true
	}
	for _, d := range settled {
		delete(left, d.Key)
	}
	var last *Delivery
	for len(left) > 0 && s.more(s.t.Subject.Wait) {
		d := s.Next()
		if !left[d.Key] {
			s.extra([]*Delivery{d})
			continue
		}
		delete(left, d.Key)
		if again[d.Key] = d; d.Scope == back.Scope {
			if last != nil && number[last.Key] > number[d.Key] {
				s.t.Errorf("message %d came behind message %d of its scope, after message %d was handed back: what comes again comes in order",
					number[d.Key]+1, number[last.Key]+1, number[back.Key]+1)
			}
			last = d
		}
		s.expectAlive(d)
	}
	for k := range left {
		s.t.Errorf("message %d did not come within %v%s", number[k]+1, s.t.Subject.Wait, s.state())
	}
	return again
}
