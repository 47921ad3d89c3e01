// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
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

// due is what is to be sent.
type due struct {
	runs   []frame.VerdictRun
	credit *frame.Credit
	seek   *transportpb.Seek
	stop   bool
	half   bool // half-close: nothing else is due
	lost   bool
}

// none reports whether there is nothing to send.
func (d *due) none() bool { return len(d.runs) == 0 && d.credit == nil && d.seek == nil && !d.stop }

// write sends what is ready, never waiting for more.
func (g *generation) write() {
	var spare []frame.VerdictRun
	for {
		d := g.ready(spare[:0])
		spare = d.runs
		if d.lost {
			return
		}
		err := g.send(d)
		if err == nil && d.half {
			if err = g.a.Stream.CloseSend(); err == nil {
				return
			}
		}
		if err != nil {
			// The reader sees the stream's end and says so.
			g.a.Cancel()
			return
		}
		if !d.none() {
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
func (g *generation) ready(spare []frame.VerdictRun) (d due) {
	g.l.mu.Lock()
	defer g.l.mu.Unlock()
	d.runs, g.runs, g.unread = g.runs, spare, 0
	if g.credit {
		window := g.creditNow()
		d.credit = &window
	}
	d.seek = g.toSeek()
	d.stop = g.stop && !g.ended
	g.credit, g.stop = false, false
	d.half = g.half && d.none()
	g.closed = g.closed || d.half
	d.lost = g.lost
	return d
}

// send sends credit, verdicts, a seek and Stop, in this order.
func (g *generation) send(d due) error {
	if d.credit != nil {
		if err := g.a.Stream.Send(&frame.SubscribeRequest{Credit: d.credit}); err != nil {
			return err
		}
	}
	for runs := d.runs; len(runs) > 0; {
		n := min(len(runs), runsAtOnce)
		if err := g.a.Stream.Send(&frame.SubscribeRequest{Settle: runs[:n]}); err != nil {
			return err
		}
		runs = runs[n:]
	}
	if d.seek != nil {
		if err := g.a.Stream.Send(&frame.SubscribeRequest{Seek: d.seek}); err != nil {
			return err
		}
	}
	if d.stop {
		return g.a.Stream.Send(&frame.SubscribeRequest{Stop: true})
	}
	return nil
}
