// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"errors"

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
	f := x.open.take()
	x.mu.Unlock()
	switch {
	case f == nil:
		return nil
	case x.shut.Load():
		f.Release()
		return errShut
	}
	x.frame = frame.SubscribeResponse{Deliveries: f}
	return x.stream.Send(&x.frame)
}
