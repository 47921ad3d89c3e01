// SPDX-License-Identifier: Apache-2.0

package conform

const sectionCredit = "4. Subscriptions, Credit"

func creditCases() []Case {
	return []Case{
		{
			ID: "credit/messages", Section: sectionCredit,
			Claim:   "No delivery comes while as many as the window allows are unsettled, and each verdict makes room.",
			Applies: reads, Needs: feeds, Run: creditMessages,
		},
	}
}

// creditMessages moves more messages than the window holds through it. The
// stream's own watch sees an overdrawn window.
func creditMessages(t *Trial) {
	const window, messages = 5, 23
	p := t.Connected()
	s := p.Open(t.registration())
	s.Credit(window, windowBytes)
	keys := t.Feed(p, messages)
	seen := map[string]bool{}
	for len(seen) < messages {
		n := min(window, messages-len(seen))
		ds := s.Take(n)
		if more := s.Within(t.Subject.Quiet / 5); len(more) > 0 && n == window {
			t.Errorf("%d more deliveries came while %d were unsettled, the window's size", len(more), window)
		}
		for _, d := range ds {
			seen[d.Key] = true
		}
		s.Finish(ds...)
	}
	for _, k := range keys {
		if !seen[k] {
			t.Errorf("message %s was not delivered", k)
		}
	}
	s.End()
	p.Close()
}
