// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"context"
	"log/slog"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pipe/settings"
)

// The bounds of what is read and not asked for: lines of a subscription that
// has no room while another one wants lines behind them, and reports.
const (
	maxQueued      = 64
	maxQueuedBytes = 1 << 20
	maxReports     = 64
)

// maxBatch is how many lines are taken apart at a time.
const maxBatch = 256

// intake reads standard input, one goroutine for all subscriptions, and only
// while a subscription has room.
type intake struct {
	in       input
	lines    lines
	settings settings.Settings
	log      *slog.Logger

	life   context.Context //nolint:containedctx // ends a read under way
	cancel context.CancelFunc
	done   chan struct{} // the goroutine has ended; nil before it began

	decoder envelope.Decoder // of the goroutine

	mu      sync.Mutex
	change  chan struct{} // room, or the end
	subs    []*subscription
	started bool
	closed  bool
	ended   bool        // nothing more is read,
	cause   *core.Fault // for this reason; nil = the input has ended
	cut     *core.Fault // why subscriptions end at once
	reports []pluginapi.Report
	numbers numbers
	loops   loops

	// Counted in lines: the last one read; of those, never handed on, under keys
	// that nobody reads, not understood.
	last, lost, other, bad uint64
}

func newIntake(in input, set settings.Settings, maxLine int, log *slog.Logger) *intake {
	i := &intake{
		in: in, lines: lines{limit: maxLine}, settings: set, log: log,
		change: make(chan struct{}, 1), done: make(chan struct{}),
	}
	i.life, i.cancel = context.WithCancel(context.Background())
	return i
}

// subscribe opens a key.
func (i *intake) subscribe(c *conn, key string) (*subscription, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil, fault.Closed("subscribe")
	}
	s := &subscription{conn: c, intake: i, key: key, wake: make(chan struct{}, 1)}
	i.subs = append(i.subs, s)
	if !i.started {
		i.started = true
		go i.run()
	}
	return s, nil
}

// run reads as long as somebody has room.
func (i *intake) run() {
	defer close(i.done)
	var parsed []arrival
	for {
		budget := i.wait()
		if budget == 0 {
			return
		}
		parsed = parsed[:0]
		for len(parsed) < budget {
			raw, ok := i.lines.next()
			if !ok {
				break
			}
			a := i.parse(raw)
			a.number = raw.number
			parsed = append(parsed, a)
		}
		switch {
		case len(parsed) > 0:
			if !i.route(parsed) {
				return
			}
			clear(parsed)
		case i.lines.eof:
			i.end(nil)
			return
		default:
			if err := i.lines.fill(i.life, i.in); err != nil {
				i.end(err)
				return
			}
		}
	}
}

// wait waits until lines are wanted and returns how many, 0 at the end.
func (i *intake) wait() int {
	for {
		i.mu.Lock()
		n, over := i.wanted(), i.closed || i.cut != nil
		i.mu.Unlock()
		if over {
			return 0
		}
		if n > 0 {
			return min(n, maxBatch)
		}
		select {
		case <-i.change:
		case <-i.life.Done():
			return 0
		}
	}
}

// wanted is how many lines the subscriptions have room for. While looped copies
// wait nothing new is read: they come first, so that a service whose every
// message fails does not fill up with copies. i.mu is held.
func (i *intake) wanted() int {
	n := 0
	for _, s := range i.subs {
		if len(s.looped) > 0 {
			return 0
		}
		if s.receiving {
			n += max(0, s.room.Messages-len(s.queue))
		}
	}
	return n
}

// changed wakes the reader.
func (i *intake) changed() {
	select {
	case i.change <- struct{}{}:
	default:
	}
}

// route hands lines to their subscriptions, in order, and waits where one has
// no place for its next. It reports false at the end.
func (i *intake) route(as []arrival) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n := range as {
		a := &as[n]
		for !i.place(a) {
			i.wakeAll()
			i.mu.Unlock()
			select {
			case <-i.change:
			case <-i.life.Done():
			}
			i.mu.Lock()
			if i.closed || i.cut != nil {
				i.lost += uint64(len(as) - n)
				return false
			}
		}
		i.enter(a)
	}
	i.wakeAll()
	return true
}

// place reports whether there is place for a line; i.mu is held.
func (i *intake) place(a *arrival) bool {
	if a.report != nil {
		return len(i.reports) < maxReports
	}
	for _, s := range i.subs {
		if s.reads(a) && s.full() {
			return false
		}
	}
	return true
}

// enter queues a line; i.mu is held.
func (i *intake) enter(a *arrival) {
	i.last = a.number
	if a.report != nil {
		i.bad++
		i.reports = append(i.reports, *a.report)
		return
	}
	read := false
	for _, s := range i.subs {
		if s.reads(a) {
			s.enter(a, read)
			read = true
		}
	}
	if !read {
		i.other++
	}
}

func (i *intake) wakeAll() {
	for _, s := range i.subs {
		s.signal()
	}
}

// end takes note of the end of the input.
func (i *intake) end(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.life.Err() != nil {
		return // closed, which is no end of the input
	}
	i.ended = true
	if err != nil {
		i.cause = fault.Refusal(core.FaultUnavailable, "%v (after line %d)", err, i.last)
	}
	i.wakeAll()
}

// fail ends every subscription at once.
func (i *intake) fail(f *core.Fault) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cut == nil {
		i.cut = f
	}
	i.changed()
	i.wakeAll()
}

// close ends the reader and says what became of the lines.
func (i *intake) close(ctx context.Context) error {
	i.mu.Lock()
	i.closed = true
	started := i.started
	i.mu.Unlock()
	i.cancel()
	if !started {
		return nil
	}
	select {
	case <-i.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, s := range i.subs {
		i.lost += uint64(len(s.queue))
	}
	level := slog.LevelDebug
	if i.lost > 0 {
		level = slog.LevelWarn
	}
	i.log.Log(ctx, level, "standard input closed", "lines", i.last, "lost", i.lost, "other_keys", i.other, "bad", i.bad)
	return nil
}
