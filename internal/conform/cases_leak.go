// SPDX-License-Identifier: Apache-2.0

package conform

import "time"

func leakCases() []Case {
	return []Case{{
		ID: "leak/subscribe-close", Section: sectionStreams,
		Claim:   "200 subscriptions opened and ended or cancelled one after the other leave nothing behind: no descriptor, no thread, no process, no memory.",
		Applies: reads,
		Needs:   func(*About) string { return procReason() },
		Alone:   true, Run: leakSubscribeClose,
	}}
}

const (
	// leakWarm rounds fill caches and pools, leakRounds are measured.
	leakWarm, leakRounds = 20, 200
	// leakEvery rounds one carries a message, and one that does not is cancelled.
	leakEvery = 10

	// What runtimes take and give back by themselves.
	spareFDs     = 2
	spareThreads = 4
	spareMemory  = 16 << 20

	// settleTime is how long what other threads close may take, stretched.
	settleTime = 2 * time.Second
)

// leakSubscribeClose measures what the process holds before and behind.
func leakSubscribeClose(t *Trial) {
	p := t.Connected()
	feed := t.About.feeds() == ""
	if feed && t.Subject.Inject == nil {
		p.Publisher() // opened before anything is measured
	}
	before := t.cycles(p, leakWarm, feed)
	warm := before.threads
	after := t.settled(p, before, t.cycles(p, leakRounds, feed))
	if after.rss > before.rss+spareMemory {
		// A collector that has not run yet leaves as much once, a leak each time.
		before.rss = after.rss
		after = t.settled(p, before, t.cycles(p, leakRounds, feed))
	}
	if more := after.fds - before.fds; more > spareFDs {
		t.Errorf("%d rounds of subscribe and end left %d descriptors open: %d before, %d behind", leakRounds, more, before.fds, after.fds)
	}
	if more := after.threads - warm; more > spareThreads {
		t.Errorf("%d rounds of subscribe and end left %d threads: %d at most in the first %d rounds, %d at most then", leakRounds, more, warm, leakWarm, after.threads)
	}
	if more := after.rss - before.rss; more > spareMemory {
		t.Errorf("%d rounds of subscribe and end left %d MiB of memory in use", leakRounds, more>>20)
	}
	if n := len(after.children) - len(before.children); n > 0 {
		t.Errorf("%d rounds of subscribe and end left %d processes", leakRounds, n)
	}
	t.Notef("%d rounds: descriptors %d to %d, threads %d to %d, memory %d to %d KiB", leakRounds,
		before.fds, after.fds, warm, after.threads, before.rss>>10, after.rss>>10)
	p.Close()
}

// settled waits until a process that holds now after some rounds holds about what
// it did before, or for settleTime.
func (t *Trial) settled(p *Process, before, now holding) holding {
	for more := t.moments(stretched(settleTime)); ; {
		h := held(p.PID())
		now.fds, now.rss, now.children = h.fds, h.rss, h.children
		if now.fds <= before.fds+spareFDs && now.rss <= before.rss+spareMemory || !more() {
			return now
		}
	}
}

// cycles subscribes and ends n times and returns what the process holds then,
// with the most threads that it had.
func (t *Trial) cycles(p *Process, n int, feed bool) holding {
	threads := 0
	for i := range n {
		s := p.subscribeAgain() // the round before may have been cancelled
		if i%leakEvery == leakEvery/2 {
			s.Cancel()
			p.forget(s)
			continue
		}
		if feed && i%leakEvery == 0 {
			s.Finish(s.feedTake(1)...)
			s.Barrier()
			threads = max(threads, held(p.PID()).threads)
		}
		s.End()
		p.forget(s)
	}
	h := held(p.PID())
	h.threads = max(h.threads, threads)
	return h
}
