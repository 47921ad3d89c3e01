// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// runsAtOnce is how many verdict runs go into one message.
const runsAtOnce = 1024

// grant has the credit sent. A plugin that has none yet is sent no credit of
// nothing. l.mu is held.
func (g *generation) grant() {
	shut := g.creditNow() == frame.Credit{}
	if shut && !g.opened {
		g.credit = false
		return
	}
	g.credit, g.opened = true, true
	signal(g.wake)
}

// decide queues a verdict. A verdict like the last one queued, about the next
// delivery, joins its run. l.mu is held.
func (g *generation) decide(r frame.VerdictRun) {
	if r.Kind == core.VerdictRequeue && g.l.caughtUp {
		g.l.caughtUp, g.l.turned = false, time.Now() // it comes back
	}
	if r.Kind != core.VerdictExtend { // of which a delivery has a few at most
		g.unread += r.Count
	}
	if n := len(g.runs); n > 0 {
		last := &g.runs[n-1]
		if last.First+last.Count == r.First && last.Kind == r.Kind && last.Delay == r.Delay &&
			last.Hold == r.Hold && last.WantResult == r.WantResult && last.Reason == r.Reason {
			last.Count += r.Count
			return
		}
	}
	g.runs = append(g.runs, r)
	if len(g.runs) == 1 {
		signal(g.wake)
	}
}

// fence queues a verdict about no delivery, which is answered behind everything
// that the plugin had sent before it read it. l.mu is held.
func (g *generation) fence() chan struct{} {
	c := make(chan struct{})
	g.fences = append(g.fences, c)
	g.decide(frame.VerdictRun{First: 0, Count: 1, Kind: core.VerdictRelease, WantResult: true})
	return c
}

// write sends what is ready, never waiting for more.
func (g *generation) write() {
	var spare []frame.VerdictRun
	for {
		runs, credit, stop, half, lost := g.ready(spare[:0])
		spare = runs
		if lost {
			return
		}
		err := g.send(runs, credit, stop)
		if err == nil && half {
			if err = g.a.Stream.CloseSend(); err == nil {
				return
			}
		}
		if err != nil {
			// The reader sees the stream's end and says so.
			g.a.Cancel()
			return
		}
		if len(runs) > 0 || credit != nil || stop {
			continue
		}
		select {
		case <-g.wake:
		case <-g.over:
			return
		}
	}
}

// ready takes what is to be sent; spare becomes the next queue.
func (g *generation) ready(spare []frame.VerdictRun) (runs []frame.VerdictRun, credit *frame.Credit, stop, half, lost bool) {
	g.l.mu.Lock()
	defer g.l.mu.Unlock()
	runs, g.runs, g.unread = g.runs, spare, 0
	if g.credit {
		window := g.creditNow()
		credit = &window
	}
	stop = g.stop && !g.ended
	g.credit, g.stop = false, false
	half = g.half && len(runs) == 0 && credit == nil && !stop
	g.closed = g.closed || half
	return runs, credit, stop, half, g.lost
}

// send sends credit, verdicts and Stop, in this order.
func (g *generation) send(runs []frame.VerdictRun, credit *frame.Credit, stop bool) error {
	if credit != nil {
		if err := g.a.Stream.Send(&frame.SubscribeRequest{Credit: credit}); err != nil {
			return err
		}
	}
	for len(runs) > 0 {
		n := min(len(runs), runsAtOnce)
		if err := g.a.Stream.Send(&frame.SubscribeRequest{Settle: runs[:n]}); err != nil {
			return err
		}
		runs = runs[n:]
	}
	if stop {
		return g.a.Stream.Send(&frame.SubscribeRequest{Stop: true})
	}
	return nil
}
