// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// creditCases lean on the watch over every stream, which knows how much is
// unsettled when a delivery comes.
func creditCases() []Case {
	return []Case{
		{
			ID: "credit/none-before", Section: sectionCredit,
			Claim:   "Nothing is delivered before the first credit.",
			Applies: reads, Needs: feeds, Run: creditNoneBefore,
		},
		{
			ID: "credit/messages", Section: sectionCredit,
			Claim:   "No delivery comes while as many as the window allows are unsettled, and each verdict makes room.",
			Applies: reads, Needs: feeds, Run: creditMessages,
		},
		{
			ID: "credit/bytes", Section: sectionCredit,
			Claim:   "The window's bytes are overdrawn by one message at most, and one large message does not starve.",
			Applies: reads, Needs: feeds, Run: creditBytes,
		},
		{
			ID: "credit/pause", Section: sectionCredit,
			Claim:   "A window of 0 messages pauses, and a larger one goes on with everything.",
			Applies: reads, Needs: feeds, Run: creditPause,
		},
		{
			ID: "credit/shrink", Section: sectionCredit,
			Claim:   "A smaller window takes nothing back and stops sending until enough is settled.",
			Applies: reads, Needs: feeds, Run: creditShrink,
		},
		{
			ID: "credit/release", Section: sectionCredit,
			Claim:   "RELEASE gives the credit back at once.",
			Applies: reads, Needs: feeds, Run: creditRelease,
		},
	}
}

func creditNoneBefore(t *Trial) {
	p := t.Connected()
	s := p.Open(t.registration())
	keys := t.Feed(p, 3)
	if early := s.Within(t.Subject.Quiet); len(early) > 0 {
		t.Errorf("%d deliveries came without credit", len(early))
	}
	s.Credit(windowMessages, windowBytes)
	if t.About.All(func(c core.Capabilities) bool { return c.Ack != core.AckNone }) {
		first, _ := s.TakeKeys(keys)
		for _, d := range first {
			s.Finish(d)
		}
	}
	s.End()
	p.Close()
}

// creditMessages moves more messages than the window holds through it.
func creditMessages(t *Trial) {
	const window, messages = 5, 23
	p := t.Connected()
	s := p.Open(t.registration())
	s.Credit(window, windowBytes)
	t.through(p, s, window, t.Messages(t.feedName(), messages, 0))
	s.End()
	p.Close()
}

// through moves messages through a window of n deliveries, looks each time
// whether more come, and notes what does not.
func (t *Trial) through(p *Process, s *Sub, n int, ms []core.Message) {
	t.Put(p, ms)
	seen := map[string]bool{}
	for len(seen) < len(ms) {
		ds := s.Take(min(n, len(ms)-len(seen)))
		if more := s.Within(t.Subject.Quiet / 5); len(more) > 0 {
			t.Errorf("%d more deliveries came while %d were unsettled, all that the window allows", len(more), len(ds))
			ds = append(ds, more...)
		}
		for _, d := range ds {
			if seen[d.Key] {
				t.Errorf("message %s was delivered twice without a reason", d.Key)
				s.Finish(ds...)
				return
			}
			seen[d.Key] = true
		}
		s.Finish(ds...)
	}
	for _, k := range Keys(ms) {
		if !seen[k] {
			t.Errorf("message %s was not delivered", k)
		}
	}
}

// creditBytes gives room for two and a half messages, then for less than one.
func creditBytes(t *Trial) {
	const messages = 9
	size := 4 << 10
	if t.Subject.Inject == nil {
		size = t.fitting(size)
	}
	p := t.Connected()
	s := p.Open(t.registration())
	s.Credit(windowMessages, uint64(size)*5/2)
	t.through(p, s, 3, t.Messages(t.feedName(), messages, size))
	s.Credit(windowMessages, 1)
	s.Barrier()
	t.through(p, s, 1, t.Messages(t.feedName(), 3, size))
	s.End()
	p.Close()
}

func creditPause(t *Trial) {
	const n = 6
	p := t.Connected()
	s := p.Open(t.registration())
	s.Credit(0, windowBytes)
	s.Barrier()
	keys := t.Feed(p, n)
	if early := s.Within(t.Subject.Quiet); len(early) > 0 {
		t.Errorf("%d deliveries came while the window was 0 messages", len(early))
	}
	s.Credit(2, windowBytes)
	first := s.Take(2)
	s.Credit(0, windowBytes)
	s.Barrier()
	s.Finish(first...)
	s.Barrier()
	if early := s.Within(t.Subject.Quiet); len(early) > 0 {
		t.Errorf("%d deliveries came while the window was set back to 0 messages", len(early))
	}
	s.Credit(windowMessages, windowBytes)
	if t.About.All(func(c core.Capabilities) bool { return c.Ack != core.AckNone }) {
		rest := s.Take(n - 2)
		s.Finish(rest...)
		for i, d := range append(first, rest...) {
			if d.Key == "" {
				t.Errorf("delivery %d is none of the %d messages that were fed: %v", i+1, n, keys)
			}
		}
	}
	s.End()
	p.Close()
}

func creditShrink(t *Trial) {
	const large, small, n = 8, 3, 20
	p := t.Connected()
	s := p.Open(t.registration())
	s.Credit(large, windowBytes)
	t.Feed(p, n)
	ds := s.Take(large)
	s.Credit(small, windowBytes)
	s.Barrier() // from here on only the smaller one is in force
	// Until fewer than the new window are unsettled nothing may come.
	s.Finish(ds[:large-small]...)
	s.Barrier()
	if more := s.Within(t.Subject.Quiet / 2); len(more) > 0 {
		t.Errorf("%d deliveries came while %d were unsettled and the window was %d", len(more), small, small)
	}
	s.Finish(ds[large-small:]...)
	taken := large
	for taken < n {
		next := s.Take(min(small, n-taken))
		taken += len(next)
		s.Finish(next...)
	}
	s.End()
	p.Close()
}

func creditRelease(t *Trial) {
	const window, rounds = 2, 4
	p := t.Connected()
	s := p.Open(t.registration())
	s.Credit(window, windowBytes)
	t.Feed(p, window*rounds)
	for range rounds {
		for _, d := range s.Take(window) {
			if r := s.Verdict(d, core.VerdictRelease); r != frame.SettleDone {
				t.Errorf("RELEASE of delivery %d was answered %s, not DONE", d.ID, statusWord(r))
			}
			if r := s.Verdict(d, core.VerdictAck); r != frame.SettleStale {
				t.Errorf("an ACK of delivery %d, which was released, was answered %s, not STALE", d.ID, statusWord(r))
			}
		}
	}
	s.End()
	p.Close()
}
