// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// unansweredMost is how many windows of verdicts may await their answers, and
// how many may wait to be read: what is decided gives its credit back before it
// is sent and answered, and so does what is void. A plugin that keeps to its
// credit comes to one window of each, and another one each time that it voids
// all it has.
const unansweredMost = 4

// generation is a lane's side of one generation's stream. All but the channels
// is guarded by the lane's lock.
type generation struct {
	l   *Lane
	a   Attachment
	log *slog.Logger

	id     uint64 // of the last delivery
	live   *flight
	count  uint64 // outstanding deliveries, as the host sees them
	bytes  uint64
	window frame.Credit
	wanted map[uint64]*flight // whose verdict's answer is awaited
	stray  map[uint64]int     // unanswered EXTENDs of deliveries that have ended
	seek   *seeking           // under way, nil = none
	fences []chan struct{}
	cases  []core.Case // by profile, of no delivery yet
	direct []bool      // by profile: see directAcks

	// The reader's alone: what Key has said of a frame so far, and the frame and the
	// message while it is asked.
	names  []named
	asking *frame.Deliveries
	asked  core.Message

	opened bool // it has been given credit
	credit bool // the credit is to be sent
	runs   []frame.VerdictRun
	unread uint64 // verdicts in runs
	stop   bool   // Stop is to be sent
	half   bool   // half-close once runs is empty
	closed bool   // half-closed
	ended  bool   // the plugin has said that nothing is delivered any more
	lost   bool

	wake chan struct{} // the writer has something to do
	over chan struct{} // the reader has returned
}

func newGeneration(l *Lane, a Attachment) *generation {
	return &generation{
		l: l, a: a,
		log:    l.log.With("plugin", a.Plugin, "generation", a.Number),
		window: CreditFor(&l.o, a.Profiles),
		cases:  cases(&l.o, a.Profiles),
		direct: directAcks(&l.o, a.Profiles),
		wanted: make(map[uint64]*flight),
		stray:  make(map[uint64]int),
		wake:   make(chan struct{}, 1),
		over:   make(chan struct{}),
	}
}

// read takes what the plugin sends until the stream ends.
func (g *generation) read() {
	defer func() {
		if g.asking != nil { // Key has ended the goroutine: another one goes on
			g.l.goroutines.Go(g.read)
			return
		}
		g.a.Cancel()
		close(g.over)
	}()
	if g.asking != nil {
		if err := g.deliver(g.asking); err != nil {
			g.finish(err)
			return
		}
	}
	var r frame.SubscribeResponse
	for {
		r = frame.SubscribeResponse{Settled: r.Settled[:0]}
		err := g.a.Stream.Recv(&r)
		if err == nil {
			err = g.take(&r)
		}
		if err != nil {
			g.finish(err)
			return
		}
	}
}

// take deals with one message. What is read after the generation was let go is
// about deliveries that are void, on a lane that may have the next one.
func (g *generation) take(r *frame.SubscribeResponse) error {
	switch {
	case r.Deliveries != nil:
		return g.deliver(r.Deliveries)
	case len(r.Settled) > 0:
		return g.results(r.Settled)
	case r.Void != nil:
		g.void(r.Void)
	case r.Sought != nil:
		return g.sought(r.Sought)
	case r.CaughtUp:
		g.catchUp()
	case r.Report != nil:
		g.report(r.Report)
	case r.Ended != nil:
		g.end(r.Ended)
	}
	return nil
}

// catchUp notes that all there is has been delivered.
func (g *generation) catchUp() {
	l := g.l
	l.mu.Lock()
	lost := g.lost
	if !lost && !l.caughtUp {
		l.caughtUp, l.turned = true, time.Now()
	}
	l.mu.Unlock()
	if !lost {
		l.changed()
	}
}

// deliver queues a frame of deliveries.
func (g *generation) deliver(d *frame.Deliveries) error {
	n := len(d.Items)
	if n == 0 {
		d.Release()
		return nil
	}
	l, now, position := g.l, time.Now(), d.Items[n-1].Position
	if l.o.Key != nil {
		g.askKeys(d)
		defer g.forgetKeys()
	}
	d.Retain(n - 1)
	l.mu.Lock()
	for i := range d.Items {
		if g.lost || l.closed {
			l.mu.Unlock()
			release(d, n-i)
			return nil
		}
		if err := g.admit(d, i, now); err != nil {
			l.mu.Unlock()
			release(d, n-i)
			return err
		}
	}
	l.position = append(l.position[:0], position[:min(len(position), shownFault)]...)
	skipped := l.stopping && l.sweep()
	l.rouse()
	l.mu.Unlock()
	if skipped {
		l.changed()
	}
	return nil
}

// release drops n holders of d.
func release(d *frame.Deliveries, n int) {
	for range n {
		d.Release()
	}
}

// admit queues one delivery. l.mu is held.
func (g *generation) admit(d *frame.Deliveries, i int, now time.Time) error {
	item := &d.Items[i]
	switch {
	case g.ended:
		return g.breach("delivered after the end of the subscription")
	case item.ID != g.id+1:
		return g.breach(fmt.Sprintf("sent delivery %d after delivery %d", item.ID, g.id))
	case int(item.Profile) >= len(g.a.Profiles):
		return g.breach(fmt.Sprintf("sent delivery %d with profile %d of %d", item.ID, item.Profile, len(g.a.Profiles)))
	case item.Attempt == 0 && g.a.Profiles[item.Profile].Counts == core.CountNative: // no cap would ever apply
		return g.breach(fmt.Sprintf("sent delivery %d with attempt 0, and profile %d says that the source counts", item.ID, item.Profile))
	case uint64(len(g.wanted)+len(g.stray)) > unansweredMost*g.window.Messages:
		return g.breach(fmt.Sprintf("leaves %d verdicts unanswered", len(g.wanted)+len(g.stray)))
	case g.unread > unansweredMost*g.window.Messages:
		return g.breach(fmt.Sprintf("delivers on and leaves %d verdicts unread", g.unread))
	case !g.opened, g.count >= g.window.Messages, g.bytes >= g.window.Bytes:
		return g.breach(fmt.Sprintf("sent delivery %d without credit for it", item.ID))
	}
	l := g.l
	f := l.newFlight()
	f.gen, f.frame, f.at = g, d, i
	f.id, f.profile, f.scope, f.received = item.ID, item.Profile, item.Scope, now
	f.weight = uint64(frame.Weight(&item.Message))
	g.id = item.ID
	g.link(f)
	if by := extension(f.caps()); by > 0 {
		l.keepHeld(f, by)
	}
	g.keyed(f, i)
	l.queue = append(l.queue, f)
	l.counts.Received++
	if l.caughtUp {
		l.caughtUp, l.turned = false, now
	}
	return nil
}

// breach is the error of a plugin that breaks the protocol.
func (g *generation) breach(what string) error {
	return &core.Fault{
		Code:    core.FaultInternal,
		Message: fmt.Sprintf("plugin %q of subscription %q %s", g.a.Plugin, g.l.o.Subscription, what),
	}
}

// link puts f among what is live, and counts it against the window.
func (g *generation) link(f *flight) {
	f.prev, f.next = nil, g.live
	if g.live != nil {
		g.live.prev = f
	}
	g.live = f
	f.counted = true
	g.count++
	g.bytes += f.weight
}

// uncount says that f's credit is the plugin's to use again.
func (g *generation) uncount(f *flight) {
	if f.counted {
		f.counted = false
		g.count--
		g.bytes -= f.weight
	}
}

// unlink takes f out of what is live.
func (g *generation) unlink(f *flight) {
	g.uncount(f)
	if f.prev == nil {
		g.live = f.next
	} else {
		f.prev.next = f.next
	}
	if f.next != nil {
		f.next.prev = f.prev
	}
	f.prev, f.next = nil, nil
}

// report logs an error that is bound to no delivery. What the plugin could not
// read is a warning, anything else an error.
func (g *generation) report(r *transportpb.Report) {
	g.l.mu.Lock()
	g.l.counts.Reports++
	g.l.mu.Unlock()
	f := foreignFault(convert.ToFault(r.GetFault()))
	level := slog.LevelError
	if f != nil && (f.Code == core.FaultInvalid || f.Code == core.FaultTooLarge) {
		level = slog.LevelWarn
	}
	g.l.reports.hitAt(level, "receive failed, the subscription goes on", "plugin", g.a.Plugin, "generation", g.a.Number,
		"position", oneLine(r.GetPosition(), shownFault), "error", faultText(f))
}

// end notes that nothing is delivered any more.
func (g *generation) end(e *transportpb.Ended) {
	l := g.l
	f := foreignFault(convert.ToFault(e.GetFault()))
	l.mu.Lock()
	g.ended = true
	if l.now == g {
		l.ended, l.endFault = true, f
		l.caughtUp, l.turned = false, time.Now()
		l.rouse() // a batch waits for more
		l.tellSeek(g.seek, l.unseekable())
	}
	g.settled()
	l.mu.Unlock()
	g.log.Debug("subscription ended", "code", core.LogEnd.String(), "error", faultText(f))
	l.changed()
}

// settled half-closes the stream when nothing is delivered any more and
// everything has its verdict. l.mu is held.
func (g *generation) settled() {
	if g.ended && g.live == nil && !g.half {
		g.half = true
		signal(g.wake)
	}
}

// finish ends the generation after its stream did. An end of the stream after
// the end of the subscription, or after the half-close, is orderly.
func (g *generation) finish(err error) {
	l := g.l
	err = foreignError(err)
	l.mu.Lock()
	lost := g.lost
	orderly := errors.Is(err, io.EOF) && (g.ended || g.half)
	l.mu.Unlock()
	if lost {
		return
	}
	if orderly {
		g.lose(nil)
		return
	}
	if errors.Is(err, io.EOF) {
		err = &link.LostError{Cause: io.ErrUnexpectedEOF}
	}
	g.lose(err)
	if l.o.Broken != nil {
		l.o.Broken(g.a.Number, err)
	}
}
