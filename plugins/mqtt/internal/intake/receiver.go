// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"io"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// The profiles of a receiver's deliveries, as indexes; where the granted QoS is 0
// there is one alone, which has no acks.
const (
	ProfileAcks   = 0
	ProfileNoAcks = 1
)

// Receiver is one subscription of a route.
type Receiver struct {
	in    *Intake
	route *Route
	name  string
	acks  bool // it has ProfileAcks
	wake  chan struct{}

	// Of the goroutine that calls Receive.
	batch batch

	// Of the goroutine that calls Settle.
	answers answers
	results []pluginapi.Result

	// Guarded by the intake's lock.
	box     inbox
	voids   []*handle
	retired []*handle // settled by the last Settle or Release, which the host still knows
	fault   *core.Fault
	stopped bool
}

// rouse has Receive look again.
func (rc *Receiver) rouse() {
	select {
	case rc.wake <- struct{}{}:
	default:
	}
}

// void tells the host of a delivery that has ended. in.mu is held.
func (rc *Receiver) void(h *handle) {
	if !rc.stopped {
		rc.voids = append(rc.voids, h)
		rc.rouse()
	}
}

// Receive waits until there is something and returns it, as far as there is room
// and up to about a frame: voids first, which need no room. While there is no
// link it hands out nothing that may come again over the next one. The error is
// ctx's, that of Fail, or io.EOF behind StopIntake. The list of deliveries is
// used again by the next call.
func (rc *Receiver) Receive(ctx context.Context, room pluginapi.Room) (pluginapi.Batch, error) {
	for {
		if ctx.Err() != nil {
			return pluginapi.Batch{}, context.Cause(ctx)
		}
		b, ok, err := rc.take(room)
		if ok || err != nil {
			return b, err
		}
		select {
		case <-rc.wake:
		case <-ctx.Done():
		}
	}
}

// take takes what there is, and reports whether that is anything.
func (rc *Receiver) take(room pluginapi.Room) (b pluginapi.Batch, ok bool, err error) {
	in := rc.in
	in.mu.Lock()
	voids := rc.voids
	rc.voids = nil
	over := rc.stopped || in.closed
	if !over && room.Messages > 0 && room.Bytes > 0 {
		rc.batch.fill(rc, room)
	}
	l, fault, due := in.live, rc.fault, in.lines.due(in.flight)
	empty := rc.box.n == 0
	in.mu.Unlock()
	due.log(in)
	rc.batch.answers.write(in, l)
	b, ok = rc.batch.end(rc)
	if len(voids) > 0 {
		b.Voids, ok = voidsOf(voids), true
	}
	switch {
	case ok:
	case over:
		return b, false, io.EOF
	case fault != nil && empty:
		return b, false, fault
	}
	return b, ok, nil
}

// voidsOf sorts handles by what becomes of them.
func voidsOf(handles []*handle) []pluginapi.Void {
	var returns, gone []any
	for _, h := range handles {
		if h.fate == fateReturns {
			returns = append(returns, h)
		} else {
			gone = append(gone, h)
		}
	}
	var voids []pluginapi.Void
	if len(returns) > 0 {
		voids = append(voids, pluginapi.Void{Handles: returns, Returns: true})
	}
	if len(gone) > 0 {
		voids = append(voids, pluginapi.Void{Handles: gone})
	}
	return voids
}

// StopIntake ends receiving. What waits goes to the route's other receivers, or
// waits for the next one. Verdicts are still carried out.
func (rc *Receiver) StopIntake() {
	in := rc.in
	in.mu.Lock()
	defer in.mu.Unlock()
	rc.stop()
}

// stop is StopIntake. in.mu is held.
func (rc *Receiver) stop() {
	if rc.stopped {
		return
	}
	rc.stopped = true
	rt, in := rc.route, rc.in
	for i, other := range rt.members {
		if other == rc {
			rt.members = append(rt.members[:i:i], rt.members[i+1:]...)
			break
		}
	}
	next := rt.next()
	switch {
	case in.closed || rt.gone:
		in.abandon(&rc.box)
	case next != nil:
		in.pass(&rc.box, &next.box, next)
		next.rouse()
	default:
		rc.box.filter(in.answerable)
		in.pass(&rc.box, &rt.box, nil)
	}
	rc.rouse()
}

// answerable reports whether an item can still be settled by somebody. What cannot
// is lost at the end of the last receiver. in.mu is held.
func (in *Intake) answerable(it *item) bool {
	if it.handle != nil && it.handle.fate == fateQueued {
		return true
	}
	in.counters.Unread++
	in.drop(*it)
	return false
}

// Close ends the receiver, once Receive and Settle have returned. What it has not
// settled stays unanswered: it holds its slot until the link ends, and comes
// again where the session is resumed.
func (rc *Receiver) Close() {
	in := rc.in
	in.mu.Lock()
	defer in.mu.Unlock()
	rc.stop()
	in.ids.each(func(e *entry) {
		for h := e.first; h != nil; {
			next := h.next
			if h.receiver == rc && h.fate == fateHanded {
				h.letGo()
			}
			h = next
		}
	})
	rc.voids, rc.retired = nil, nil
}
