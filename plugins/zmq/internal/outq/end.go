// SPDX-License-Identifier: Apache-2.0

package outq

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// ErrClosed is the cause of a queue that was aborted without one.
var ErrClosed = errors.New("the endpoint is closed")

// End takes nothing more and waits for nothing: once what waits is written the
// connection is half-closed. Abort must follow.
func (q *Queue) End() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.finishing = true
	q.wake()
}

// Finish is End, and waits: until the peer has ended the connection too, which
// Abort tells, a write has failed, or ctx has ended.
func (q *Queue) Finish(ctx context.Context) {
	q.End()
	select {
	case <-q.done:
	case <-ctx.Done():
		return
	}
	if q.Err() != nil {
		return
	}
	select {
	case <-q.gone:
	case <-ctx.Done():
	}
}

// Err returns why the queue ended before Abort, or what Abort was given, nil
// while neither has happened.
func (q *Queue) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.cause
}

// Lost returns how many shared messages were not written whole when the queue
// ended.
func (q *Queue) Lost() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}

// Abort ends the queue and its writer at once, also within a write; what the
// operating system has not taken by then is not written. It returns the messages
// that were not written whole, in order, to be sent elsewhere: their tickets are
// not answered. Of the first a part may have left; the rest never follows, and a
// peer makes nothing of a part of a message (RFC 23, framing). A second call
// returns none. Where a write has failed before, its error is the cause.
func (q *Queue) Abort(cause error) []Unsent {
	q.mu.Lock()
	first := true
	select {
	case <-q.gone:
		first = false
	default:
		close(q.gone)
		q.ended = true
		q.cause = cmp.Or(q.cause, cause, ErrClosed)
		q.wake()
	}
	q.mu.Unlock()
	if first {
		_ = q.nc.SetWriteDeadline(time.Unix(1, 0)) // the connection is closed already: the write has ended
	}
	<-q.done
	if !first {
		return nil
	}
	return q.leave()
}

// leave empties the queue once its writer has ended.
func (q *Queue) leave() []Unsent {
	q.mu.Lock()
	var left []Unsent
	var answers []func()
	for i := range q.waiting.len() {
		e, cause := *q.waiting.at(i), q.cause
		if e.fanned {
			q.lost++
		}
		switch {
		case e.fanned:
		case e.ticket.Bound:
			answers = append(answers, func() { e.ticket.tell(pluginapi.Refused(unwritten(&e, cause))) })
		default:
			left = append(left, e.unsent())
		}
		q.release(&e)
	}
	q.waiting.cut(0)
	q.bytes, q.begun, q.inWrite, q.control = 0, 0, 0, nil
	q.account()
	q.giveBack()
	q.mu.Unlock()
	for _, answer := range answers {
		answer()
	}
	return left
}

// TakeBack returns the messages that the writer has not in work, in order, to be
// sent elsewhere, but for bound and shared ones behind which nothing is taken. It
// is for a peer that does not read; OnRoom's function is called when it reads
// again.
func (q *Queue) TakeBack() []Unsent {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended || q.finishing {
		return nil
	}
	keep := q.waiting.len()
	for keep > q.inWrite && !q.waiting.at(keep-1).fanned && !q.waiting.at(keep-1).ticket.Bound {
		keep--
	}
	var back []Unsent
	for i := keep; i < q.waiting.len(); i++ {
		e := q.waiting.at(i)
		back = append(back, e.unsent())
		q.bytes -= int64(e.size)
		q.release(e)
	}
	q.waiting.cut(keep)
	q.full = true
	return back
}

// Oldest returns Ticket.I of the first shared message that waits, of those that
// the writer has in work or of the others.
func (q *Queue) Oldest(inWork bool) (i int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := 0
	if !inWork {
		at = q.inWrite
	}
	if at >= q.waiting.len() || inWork && q.inWrite == 0 || !q.waiting.at(at).fanned {
		return 0, false
	}
	return q.waiting.at(at).ticket.I, true
}

// Shed drops the shared messages that the writer has not in work and returns how
// many they were.
func (q *Queue) Shed() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	keep := q.waiting.len()
	for keep > q.inWrite && q.waiting.at(keep-1).fanned {
		keep--
		e := q.waiting.at(keep)
		q.bytes -= int64(e.size)
		q.release(e)
	}
	n := q.waiting.len() - keep
	q.waiting.cut(keep)
	q.account()
	return n
}

// Progress returns a number that is another one once the peer, or the operating
// system on its behalf, has taken anything more.
func (q *Queue) Progress() int64 {
	waits := 0
	if q.raw != nil {
		_ = q.raw.Control(func(fd uintptr) { waits = unacknowledged(int(fd)) }) // closed: nothing is taken
	}
	return int64(q.Written()) - int64(waits)
}

// Written returns how many bytes of messages were written since the queue began.
func (q *Queue) Written() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.written
}

// unwritten is the fault of a bound message that was not written whole.
func unwritten(e *entry, cause error) *core.Fault {
	return fault.Passing(core.FaultUnavailable, "send it again: nobody has it",
		"%s: the connection ended before it was written whole (%v); the message was not sent", fault.PublishTo(e.name), cause)
}

// fail ends the queue after a write that failed. Who reads the connection is
// given its end, as the other side may not have closed its own.
func (q *Queue) fail(err error) {
	q.mu.Lock()
	q.ended = true
	q.cause = cmp.Or(q.cause, err)
	q.mu.Unlock()
	if h, ok := q.nc.(interface{ CloseRead() error }); ok {
		_ = h.CloseRead() // it is at its end already
	}
}

// answer confirms the messages that are written.
func (q *Queue) answer() {
	for i, t := range q.answers {
		t.tell(pluginapi.Confirmed())
		q.answers[i] = Ticket{}
	}
	q.answers = q.answers[:0]
}
