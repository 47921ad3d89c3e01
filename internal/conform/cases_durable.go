// SPDX-License-Identifier: Apache-2.0

package conform

import "github.com/longshore-go/longshore/core"

func durableCases() []Case {
	return []Case{{
		ID: "unsettled/durable", Section: sectionCapabilities,
		Claim:   "Where durable says so, what is unsettled survives a restart of the transport itself, and what was acked stays gone.",
		Applies: applies(reads, with("durable deliveries that come again", durable)),
		Needs: needs(feeds, seesUnsettled, func(a *About) string {
			if a.Subject.Restart == nil {
				return "a way to restart the transport itself"
			}
			return ""
		}),
		Alone: true, Run: unsettledDurable,
	}}
}

func durable(c core.Capabilities) bool { return c.Durable && returnsAtAll(c) }

// unsettledDurable restarts the transport below a process and kills that: what
// the transport remembers comes to the next one.
func unsettledDurable(t *Trial) {
	p, s := t.reading()
	l := s.leaves(9)
	s.Barrier()
	ctx, cancel := t.limited()
	defer cancel()
	if err := t.Subject.Restart(ctx, t.place(p, t.Subscription())); err != nil {
		t.Fatalf("the transport could not be restarted: %v", err)
	}
	p.Kill()
	_, s = t.reading()
	var back []*Delivery
	for _, d := range l.back {
		if durable(d.Caps) {
			back = append(back, d)
		}
	}
	s.renewed(back, s.again(back, keysOf(l.settled), "they were acked before the transport was restarted"), byTheKill)
	s.leave()
}
