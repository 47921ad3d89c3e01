// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"syscall"
	"time"
)

func killCases() []Case {
	return []Case{
		{
			ID: "kill/plugin", Section: sectionSupervision,
			Claim:   "After SIGKILL in the middle of traffic a new generation goes on: everything fed is settled or comes again, unless what is unsettled is lost.",
			Applies: reads, Needs: feeds, Run: killPlugin,
		},
		{
			ID: "kill/host", Section: sectionLeash,
			Claim:   "After SIGKILL of the host nothing of the plugin is left within two seconds, and what was unsettled becomes what Unsettled says.",
			Applies: reads,
			Needs: func(a *About) string {
				if why := a.feeds(); why != "" {
					return why
				}
				if a.Describe.GetWantsStdio() && a.Subject.Inject != nil {
					return "an injector that works with a host of its own: the plugin reads the host's standard input"
				}
				return ""
			},
			Run: killHost,
		},
	}
}

// killPlugin kills the process again and again while messages flow, and counts.
func killPlugin(t *Trial) {
	const kills, batch = 3, 60
	fed, settled, seen := []string{}, map[string]bool{}, map[string]int{}
	lost := 0 // at most, of what was in flight
	take := func(s *Sub, n int) {
		for _, d := range s.Take(n) {
			seen[d.Key]++
			if len(seen)%3 == 0 {
				continue // left unsettled
			}
			s.Finish(d)
			settled[d.Key] = true
		}
	}
	for range kills {
		p := t.Connected()
		s := p.Subscribe()
		fed = append(fed, t.Feed(p, batch)...)
		take(s, batch/2)
		p.Kill()
		if !t.About.All(returnsAtAll) {
			lost += batch
		}
	}
	p := t.Connected()
	s := p.Subscribe()
	missing := func() (keys []string) {
		for _, k := range fed {
			if !settled[k] {
				keys = append(keys, k)
			}
		}
		return keys
	}
	if lost == 0 {
		first, more := s.TakeKeys(missing())
		for _, d := range first {
			seen[d.Key]++
			s.Finish(d)
		}
		s.Finish(more...)
		for _, d := range more {
			seen[d.Key]++
		}
	}
	again := 0
	for _, n := range seen {
		again += n - 1
	}
	if again > 0 {
		t.Notef("%d of %d messages were delivered more than once over %d kills (%d deliveries too many)", again, len(fed), kills, again)
	}
	s.Barrier()
	s.End()
	p.Close()
}

// killHost kills a real host that holds deliveries.
func killHost(t *Trial) {
	if t.options.Host == nil {
		t.Skipf("there is no command that acts as a host here")
	}
	const messages = 12
	settle := 0
	if t.About.All(acksSingle) {
		settle = messages / 3
	}
	v := t.victim(messages, settle)
	v.next()
	if t.Subject.Inject != nil {
		t.Feed(nil, messages)
	}
	word := v.next()
	left := append([]int{word.PID}, descendants(word.PID)...)
	killed := time.Now()
	v.kill()
	t.gone(left, killed)
	if !t.About.All(returnsAtAll) {
		return
	}
	p := t.Connected()
	s := p.Subscribe()
	first, more := s.TakeKeys(word.Open)
	for _, d := range first {
		s.Finish(d)
	}
	s.Finish(more...)
	again := 0
	for _, k := range word.Settled {
		for _, d := range more {
			if d.Key == k {
				again++
			}
		}
	}
	if again > 0 {
		t.Notef("%d of %d deliveries whose ack was accepted came again: the kill was quicker than the source", again, len(word.Settled))
	}
	s.Barrier()
	s.End()
	p.Close()
}

// gone waits for processes to end, at most as long as they may live without
// their host, and kills and names those that do not.
func (t *Trial) gone(pids []int, since time.Time) {
	const look = 5 * time.Millisecond
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		left := pids[:0:0]
		for _, pid := range pids {
			if alive(pid) {
				left = append(left, pid)
			}
		}
		if len(left) == 0 {
			return
		}
		if limit := stretched(endLimit); time.Since(since) > limit {
			t.Errorf("%v after the end of its host the process or a child of it is still alive: %v", limit, left)
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return
		}
		select {
		case <-tick.C:
		case <-t.Ctx.Done():
			return
		}
	}
}
