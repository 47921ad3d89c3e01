// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

const (
	// creditGrace is how long a used up window waits for credit before Receive
	// is asked for voids and reports alone: a busy host gives credit sooner, and
	// then nobody has to be called back.
	creditGrace = 5 * time.Millisecond
	// dullPause is the wait after a Receive that had nothing to say although it
	// should have blocked.
	dullPause = 20 * time.Millisecond
	// seekLimit bounds a Seek, during which nothing is delivered: it may have to ask
	// a broker, and that again after a lost connection.
	seekLimit = time.Minute
	// maxDull is how often in a row a Receive with room may say nothing before
	// it is slowed down and complained about.
	maxDull = 100
)

// receiver runs Receive and sends what comes of it, with ids and within the
// window. It owns its fields.
type receiver struct {
	x *subscription

	ctx    context.Context //nolint:containedctx // of Receive; made anew after a recall
	cancel context.CancelFunc

	pending   []Delivery  // read, and beyond the window
	caughtUp  bool        // to be told once nothing is pending
	ending    bool        // Receive has said that there is nothing more
	fault     *core.Fault // why, nil = the end
	told      bool        // StopIntake was called, or nobody is to be told
	overfills bool        // the transport returned more than its room
	graced    bool        // the grace of a used up window has passed
	dull      int         // calls in a row that said nothing

	names [8]string // of headers, by place, that are UTF-8
	pause *time.Timer
	ids   []uint64
}

func (r *receiver) init(x *subscription) {
	r.x = x
	r.told = x.powers.stopper == nil
	r.pause = time.NewTimer(time.Hour)
	r.pause.Stop()
}

// step is what the receiver does next.
type step uint8

const (
	stepQuit step = iota
	stepSeek
	stepFlush    // send pending deliveries
	stepCaughtUp // say so
	stepEnd
	stepReceive
	stepWait  // for a change
	stepGrace // for a change, not for long
)

func (r *receiver) run() {
	defer close(r.x.received)
	defer r.stopped()
	defer r.drop()
	defer r.pause.Stop()
	for {
		what, room := r.next()
		switch what {
		case stepQuit:
			return
		case stepSeek:
			r.seek()
		case stepFlush:
			r.flush()
		case stepCaughtUp:
			r.caughtUp = false
			r.x.tell(&frame.SubscribeResponse{CaughtUp: true})
		case stepEnd:
			r.x.flush()
			r.drop()
			r.stopped()
			r.x.end(r.fault)
		case stepReceive:
			r.receive(room)
		case stepWait:
			r.wait(0)
		case stepGrace:
			r.wait(creditGrace)
			r.graced = true
		}
	}
}

// next decides by the state of the subscription.
func (r *receiver) next() (step, Room) {
	x := r.x
	x.mu.Lock()
	defer x.mu.Unlock()
	room := x.room()
	if room.Messages > 0 {
		r.graced = false
	}
	switch {
	case x.ctx.Err() != nil, x.over && x.closing:
		return stepQuit, room
	case len(x.seeks) > 0 && x.carried < x.seeks[0].behind:
		return stepWait, room
	case len(x.seeks) > 0:
		return stepSeek, room
	case x.over:
		return stepWait, room
	case len(r.pending) > 0 && room.Messages > 0:
		return stepFlush, room
	case x.stopped:
		return stepEnd, room
	case len(r.pending) == 0 && r.caughtUp:
		return stepCaughtUp, room
	case r.ending && len(r.pending) == 0:
		return stepEnd, room
	case r.ending:
		return stepWait, room
	case room.Messages > 0:
		return stepReceive, room
	case r.overfills && len(r.pending) > 0:
		return stepWait, room
	case !r.graced:
		return stepGrace, room
	}
	return stepReceive, Room{}
}

// wait waits for a change, at most for limit where that is not 0.
func (r *receiver) wait(limit time.Duration) {
	var due <-chan time.Time
	if limit > 0 {
		r.pause.Reset(limit)
		defer r.pause.Stop()
		due = r.pause.C
	}
	select {
	case <-r.x.toReceiver:
	case <-due:
	case <-r.x.ctx.Done():
	}
}

// receive calls Receive once and reports what it returned.
func (r *receiver) receive(room Room) {
	x := r.x
	if !r.lend(room) {
		return
	}
	var (
		batch Batch
		err   error
	)
	panicked := contain(x.log, "Receive", func() { batch, err = x.sub.Receive(r.ctx, room) })
	x.mu.Lock()
	x.recall = nil
	over := x.over
	x.mu.Unlock()
	if over { // it came back too late: Ended is sent, so nothing can follow
		r.pending = append(r.pending, batch.Deliveries...)
		r.drop()
		r.stopped()
		return
	}
	recalled := r.ctx.Err() != nil
	said := r.report(&batch, room)
	switch {
	case r.ending: // the report broke the contract
	case panicked != nil:
		r.ending, r.fault = true, panicked
	case err == nil || recalled && errors.Is(err, context.Canceled):
		r.yawn(said || recalled, room)
	case errors.Is(err, io.EOF):
		r.ending = true
	default:
		r.ending, r.fault = true, faultOf("receive", err)
	}
}

// lend enters a Receive with its room, so that a change can call it back. It
// reports false when something has come up in between.
func (r *receiver) lend(room Room) bool {
	x := r.x
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopped || len(x.seeks) > 0 {
		return false
	}
	if now := x.room(); now.Messages < room.Messages || room.Messages == 0 && now.Messages > 0 {
		return false
	}
	if r.ctx == nil || r.ctx.Err() != nil {
		if r.cancel != nil {
			r.cancel()
		}
		r.ctx, r.cancel = context.WithCancel(x.ctx)
	}
	x.recall, x.given = r.cancel, room
	return true
}

// yawn slows down a transport that returns without a thing to say.
func (r *receiver) yawn(said bool, room Room) {
	if said {
		r.dull = 0
		return
	}
	r.dull++
	switch {
	case room.Messages == 0:
		r.wait(dullPause)
	case r.dull == maxDull:
		r.x.log.Warn("transport returns from Receive with nothing; it should block until there is something")
		fallthrough
	case r.dull > maxDull:
		r.wait(dullPause)
	}
}

// report passes on a batch in its order: voids, reports, deliveries, caught up.
// It reports whether there was anything in it.
func (r *receiver) report(b *Batch, room Room) bool {
	for i := range b.Voids {
		r.void(&b.Voids[i])
	}
	for i := range b.Reports {
		m := &transportpb.Report{
			Fault:    convert.FromFault(brief(b.Reports[i].Fault)),
			Position: convert.Text(cut(b.Reports[i].Position, maxReportPlace)),
		}
		r.x.tell(&frame.SubscribeResponse{Report: m})
	}
	if n := len(b.Deliveries); n > 0 {
		if n > room.Messages && !r.overfills {
			r.overfills = true
			r.x.log.Warn("transport returns more deliveries than its room; what is beyond waits in the plugin",
				"deliveries", n, "room", room.Messages)
		}
		r.deliver(b.Deliveries, b.Memory)
	}
	if b.CaughtUp {
		r.caughtUp = true
	}
	return len(b.Voids)+len(b.Reports)+len(b.Deliveries) > 0 || b.CaughtUp
}

// drop forgets what was read and cannot be sent any more: it stays unsettled.
// Where the source never gives that again, it is an error, and the host is told
// as long as it can be.
func (r *receiver) drop() {
	if n := len(r.pending); n > 0 {
		lost := 0
		for i := range r.pending {
			if p := r.pending[i].Profile; int64(p) < int64(len(r.x.profiles)) && r.x.profiles[p].Unsettled == core.UnsettledLost {
				lost++
			}
		}
		r.pending = nil
		r.x.log.Warn("deliveries were read and not passed on; they stay unsettled", "deliveries", n)
		if lost > 0 {
			r.x.log.Error("messages were read and not passed on before the end; the source does not give them again", "lost", lost)
			r.tellLost(lost)
		}
	}
	if r.cancel != nil {
		r.cancel()
	}
}

// tellLost reports messages that nobody will see, unless nothing can follow any
// more.
func (r *receiver) tellLost(n int) {
	x := r.x
	x.mu.Lock()
	over := x.over
	x.mu.Unlock()
	if over || x.ctx.Err() != nil {
		return
	}
	f := newFault(core.FaultCanceled, "%d messages were read and not passed on before the end; the source does not give them again", n)
	x.tell(&frame.SubscribeResponse{Report: &transportpb.Report{Fault: convert.FromFault(f)}})
}

// stopped tells the transport, once, that no Receive follows. After Close there
// is nobody to be told.
func (r *receiver) stopped() {
	if r.told || r.x.shut.Load() {
		return
	}
	r.told = true
	_ = contain(r.x.log, "StopIntake", r.x.powers.stopper.StopIntake)
}

// seek moves the position: what was received before it becomes void.
func (r *receiver) seek() {
	x := r.x
	x.mu.Lock()
	to := x.seeks[0].to
	x.seeks = x.seeks[1:]
	over := x.over || r.ending
	x.mu.Unlock()
	x.moving.Lock()
	defer x.moving.Unlock()
	if f, partly := r.move(to, over); f != nil {
		sought := &transportpb.Sought{Fault: convert.FromFault(brief(f))}
		if partly {
			x.mu.Lock()
			sought.Next = x.ledger.Next()
			x.mu.Unlock()
		}
		r.x.tell(&frame.SubscribeResponse{Sought: sought})
		return
	}
	x.mu.Lock()
	r.ids = x.ledger.All(r.ids[:0])
	for _, id := range r.ids {
		x.ledger.Remove(id)
	}
	x.late.clear()
	next := x.ledger.Next()
	x.mu.Unlock()
	r.pending, r.caughtUp = nil, false
	// Only from the beginning is everything sure to come again. Where it is not
	// sure a double is better than a loss.
	r.sendVoid(r.ids, to.Kind == PositionBeginning)
	r.x.tell(&frame.SubscribeResponse{Sought: &transportpb.Sought{Next: next}})
}

// move calls Seek. partly says of a fault that the position may have changed.
func (r *receiver) move(to Position, over bool) (f *core.Fault, partly bool) {
	x := r.x
	switch {
	case x.powers.seeker == nil || !x.canSeek:
		return newFault(core.FaultUnsupported, "seek: the transport cannot move a subscription"), false
	case to.Kind == PositionUnspecified:
		return newFault(core.FaultInvalid, "seek: the kind of position is not known"), false
	case over:
		return newFault(core.FaultClosed, "seek: the subscription has ended"), false
	}
	ctx, cancel := context.WithTimeout(x.ctx, seekLimit)
	defer cancel()
	var err error
	if f := contain(x.log, "Seek", func() { err = x.powers.seeker.Seek(ctx, to) }); f != nil {
		return f, true
	}
	if err != nil {
		return faultOf("seek", err), errors.As(err, new(*PartlyMovedError))
	}
	return nil, false
}

// ended returns the message that ends a subscription.
func ended(f *core.Fault) *transportpb.Ended {
	return &transportpb.Ended{Fault: convert.FromFault(brief(f))}
}
