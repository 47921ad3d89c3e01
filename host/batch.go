// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
)

// mostBatch bounds the size of batches: the window that it asks for is held in
// memory.
const mostBatch = 100_000

// HandleBatch sets a handler that gets up to max messages at a time. It is called
// when max have come, when wait is over since the first of them came, and when
// nothing more can come because the window is used up; never with none. A wait for
// which the source does not leave its deliveries with the host is refused.
//
// f returns an error for each message in the order of the batch, read as that of
// a [Handler]; each message is settled by its own, started in that order. A nil
// slice acks all of them. A list of the wrong length is logged (L-LEN): a message
// without an entry is retried, extra entries are ignored. A panic counts for every
// message of the batch, as [OnPanic] says, and so does runtime.Goexit. When a stop
// has ended ctx, every error leaves its message unsettled.
//
// Messages that cannot be decoded and those over their attempts are settled before
// f sees the rest, and f is not called when nothing is left. [Timeout] is for the
// whole call; [Workers] is how many batches are handled at a time; [Forward] sends
// each acked message. [Middleware] is refused: there is no single delivery for it
// to wrap, and none for batches is offered.
//
// f may sort the slice or take messages out of it: the entries of its list are then
// about the messages in the order that the slice has when f returns. The slice and
// the messages are valid until f returns. In all else it is as [Handle] says.
func HandleBatch[T any](s *Subscription, max int, wait time.Duration, f func(ctx context.Context, ms []*Message[T]) []error, rules ...Rule) {
	h := register(s, "HandleBatch", caller(), rules)
	if h == nil {
		return
	}
	wrong := func(message, fix string) {
		h.complain(s, Finding{Option: "HandleBatch", Message: message, Fix: fix, Places: places(h.place)})
	}
	if f == nil {
		wrong("has no handler", "give a function")
	}
	if max < 1 || max > mostBatch {
		wrong(fmt.Sprintf("%d is no number of messages", max), fmt.Sprintf("use 1 to %d", mostBatch))
	}
	if wait <= 0 {
		wrong(fmt.Sprintf("%v is no time to wait for a full batch", wait), "use a time above 0, such as 10ms")
	}
	carried[T](h, s, unread[T])
	h.decoded, h.most = !isRaw[T](), max
	h.runs = &batcher[T]{runner: runner[T]{calls: h.calls(s)}, max: max, wait: wait, handler: f}
}

// batcher calls a handler for several deliveries at a time.
type batcher[T any] struct {
	runner[T] // without a handler: it decodes
	max       int
	wait      time.Duration
	handler   func(ctx context.Context, ms []*Message[T]) []error
	lists     sync.Pool // of *[]*Message[T]
}

func (b *batcher[T]) prepare() []Finding { return b.assumes(assumable[T]) }

func (b *batcher[T]) batch() *settlement.Batch {
	return &settlement.Batch{Max: b.max, Wait: b.wait, Open: b.open, Handle: b.handleAll, Exited: b.allExited}
}

// open is the settlement.Batch.Open of b.
func (b *batcher[T]) open(ctx context.Context, d *settlement.Delivery) (said settlement.Said, ok bool) {
	if unready(d) {
		return b.unread(ctx, d), false
	}
	m := b.message(d)
	defer func() {
		if v := recover(); v != nil { // of a codec
			said, ok = b.panicked(ctx, d, thrown(v)), false
		}
	}()
	if err := decode(b.codecs, b.rules.contentType, &d.Message, &m.Value); err != nil {
		return b.undecodable(d, err), false
	}
	d.Value = m
	return settlement.Said{}, true
}

// handleAll is the settlement.Batch.Handle of b.
func (b *batcher[T]) handleAll(ctx context.Context, ds []*settlement.Delivery, said []settlement.Said) (outcomes int) {
	list, _ := b.lists.Get().(*[]*Message[T])
	if list == nil {
		list = new([]*Message[T])
	}
	ms := (*list)[:0]
	for i, d := range ds {
		m := d.Value.(*Message[T])
		m.e.delivery, m.e.index = d, i
		ms = append(ms, m)
	}
	if !b.call(ctx, ds, ms[:len(ms):len(ms)], said, &outcomes) {
		return outcomes // after a panic the messages may still be in somebody's hands
	}
	for _, d := range ds { // the handler may have changed ms
		b.done(d.Value.(*Message[T]))
	}
	clear(ms)
	*list = ms
	b.lists.Put(list)
	return outcomes
}

// call runs the handler and reads what it said of each message. It reports
// whether the handler has returned.
func (b *batcher[T]) call(ctx context.Context, ds []*settlement.Delivery, ms []*Message[T], said []settlement.Said, outcomes *int) (returned bool) {
	defer func() {
		var e *PanicError
		if v := recover(); v != nil {
			e, *outcomes = thrown(v), len(ds)
			for i, d := range ds {
				said[i] = b.panicked(ctx, d, e)
			}
		}
		for i, d := range ds {
			m := d.Value.(*Message[T])
			if returned || e != nil {
				m.e.undoUnless(&said[i])
			} else { // it ends the goroutine; what is decided is up to allExited
				m.e.undone(settlement.ErrExited)
			}
		}
	}()
	errs := b.run(ctx, ds, ms)
	*outcomes = len(errs)
	if errs == nil {
		*outcomes = -1
	}
	for i, d := range ds {
		switch {
		case errs == nil, i < len(errs) && errs[i] == nil:
			b.acked(&d.Value.(*Message[T]).e, &said[i])
		case i < len(errs) && errs[i] != errLeftOut: //nolint:errorlint // it is the batch's own
			said[i] = b.judge(ctx, d, errs[i])
		default:
			said[i] = b.missing(ctx, d)
			if i < len(errs) {
				*outcomes--
			}
		}
	}
	return true
}

// run calls the user's handler, within its limits and spans.
func (b *batcher[T]) run(ctx context.Context, ds []*settlement.Delivery, ms []*Message[T]) []error {
	if b.rules.timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, b.rules.timeout)
		defer cancel()
		ctx = limited
	}
	if b.tracer != nil {
		return tracedBatch(ctx, b.tracer, ms, func(ctx context.Context) []error { return b.user(ctx, ds, ms) })
	}
	return b.user(ctx, ds, ms)
}

// user calls the user's handler with the context in which its messages publish.
// What it returns is in the order of the deliveries.
func (b *batcher[T]) user(ctx context.Context, ds []*settlement.Delivery, ms []*Message[T]) []error {
	for _, m := range ms {
		m.e.ctx = ctx
	}
	errs := b.handler(ctx, ms)
	if errs == nil || !reordered(ds, ms) {
		return errs
	}
	sorted := make([]error, len(ds))
	for i := range sorted {
		sorted[i] = errLeftOut
	}
	for i, m := range ms[:min(len(ms), len(errs))] {
		// One that is there twice is told by its first entry.
		if m.of(ds) && sorted[m.e.index] == errLeftOut { //nolint:errorlint // it is the batch's own
			sorted[m.e.index] = errs[i]
		}
	}
	return sorted
}

// reordered reports whether the messages of a batch are not in the order of its
// deliveries any more.
func reordered[T any](ds []*settlement.Delivery, ms []*Message[T]) bool {
	for i, m := range ms {
		if m == nil || m.e.index != i || !m.of(ds) {
			return true
		}
	}
	return false
}

// of reports whether m is one of the messages of a batch.
func (m *Message[T]) of(ds []*settlement.Delivery) bool {
	if m == nil || m.e.index >= len(ds) {
		return false
	}
	own, ok := ds[m.e.index].Value.(*Message[T])
	return ok && own == m
}

// missing is what it means that the handler has left a message out.
func (c *calls) missing(ctx context.Context, d *settlement.Delivery) settlement.Said {
	if ctx.Err() != nil {
		return settlement.Said{Outcome: core.Outcome{Kind: core.OutcomeLeave}}
	}
	return c.backedOff(d, settlement.Said{Outcome: core.Outcome{Kind: core.OutcomeRetry}})
}

// allExited is the settlement.Batch.Exited of b.
func (b *batcher[T]) allExited(ctx context.Context, ds []*settlement.Delivery, said []settlement.Said) {
	for i, d := range ds {
		said[i] = b.exited(ctx, d)
	}
}
