// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"errors"
	"sync/atomic"

	"github.com/longshore-go/longshore/internal/frame"
)

// openFrame is the frame of deliveries that is not sent yet: they have ids and
// count against the window. What Receive returns while the sender is busy joins
// it, so that a transport which returns one delivery at a time does not pay for
// a frame each. Nobody waits for more, and whatever else is sent goes behind it.
type openFrame struct {
	f    *frame.Deliveries // nil = empty
	size int64
	last int // messages of the last one, which the next one is made for
	lent []*loan
}

// loan counts who needs the memory of a batch: the receiver, and each frame with
// deliveries of it.
type loan struct {
	memory Memory
	users  atomic.Int32
}

// lend notes whose memory the frame lies in, nil = nobody wants it back.
func (o *openFrame) lend(l *loan) {
	if l != nil && (len(o.lent) == 0 || o.lent[len(o.lent)-1] != l) {
		l.users.Add(1)
		o.lent = append(o.lent, l)
	}
}

// done ends one use of a loan. Where one is left open its memory does not come
// back.
func (x *subscription) done(l *loan) {
	if l != nil && l.users.Add(-1) == 0 {
		_ = contain(x.log, "Release", l.memory.Release)
	}
}

// takes reports whether n more bytes fit; a message alone always does.
func (o *openFrame) takes(n int64) bool {
	return o.f == nil || len(o.f.Items) < frame.MaxItems && o.size+n <= frame.MaxBytes
}

// add adds one delivery; more says how many are about to follow.
func (o *openFrame) add(d *frame.Delivery, size int64, more int) {
	if o.f == nil {
		o.f = frame.DeliveriesOf(min(max(more+1, o.last), frame.MaxItems))
	}
	o.f.Items = append(o.f.Items, *d)
	o.size += size
}

// full reports whether nothing more fits.
func (o *openFrame) full() bool {
	return o.f != nil && (len(o.f.Items) >= frame.MaxItems || o.size >= frame.MaxBytes)
}

// take returns the frame, nil where it is empty, and leaves an empty one.
func (o *openFrame) take() *frame.Deliveries {
	f := o.f
	if f != nil {
		*o = openFrame{last: len(f.Items)}
	}
	return f
}

// takeLent returns the frame and whose memory it lies in, and leaves the room of
// the last such list.
func (o *openFrame) takeLent(last []*loan) (*frame.Deliveries, []*loan) {
	lent := o.lent
	f := o.take()
	o.lent = last[:0]
	return f, lent
}

// sendOpen sends the open frame whenever it is told that there is one.
func (x *subscription) sendOpen() {
	defer close(x.sent)
	for {
		select {
		case <-x.toSender:
			x.flush()
		case <-x.ctx.Done():
			return
		}
	}
}

// flush sends the open frame.
func (x *subscription) flush() {
	x.sending.Lock()
	err := x.sendFrame()
	x.sending.Unlock()
	x.broken(err)
}

// tell sends; a stream that cannot be sent on is over.
func (x *subscription) tell(r *frame.SubscribeResponse) { x.broken(x.send(r)) }

// broken ends the stream when err says that it cannot be sent on.
func (x *subscription) broken(err error) {
	if err == nil {
		return
	}
	select {
	case x.failed <- err:
	default:
	}
	x.cancel()
}

// errShut is what sending returns after the stream has ended.
var errShut = errors.New("stream has ended")

// send sends one message to the host, behind the open frame. gRPC wants one
// sender at a time.
func (x *subscription) send(r *frame.SubscribeResponse) error {
	x.sending.Lock()
	defer x.sending.Unlock()
	if err := x.sendFrame(); err != nil {
		return err
	}
	if x.shut.Load() {
		return errShut
	}
	return x.stream.Send(r)
}

// sendFrame sends the open frame; x.sending is held.
func (x *subscription) sendFrame() error {
	x.mu.Lock()
	var f *frame.Deliveries
	f, x.lent = x.open.takeLent(x.lent)
	x.mu.Unlock()
	switch {
	case f == nil:
		return nil
	case x.shut.Load():
		f.Release()
		return errShut
	}
	x.frame = frame.SubscribeResponse{Deliveries: f}
	if err := x.stream.Send(&x.frame); err != nil {
		return err
	}
	for _, l := range x.lent {
		x.done(l)
	}
	clear(x.lent)
	return nil
}
