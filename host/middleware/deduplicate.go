// SPDX-License-Identifier: Apache-2.0

package middleware

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-go/longshore/host"
)

// Deduplicate acks messages whose id, the value of the named header, was handled
// before on the same subscription, without calling the handler again. A message
// without the header is always handled.
//
// An id is remembered once the handler has returned nil, and forgotten where the
// delivery is not acked after all; a message that fails is so handled again. It is
// remembered for keep, among the newest most of the subscription, in the memory of
// this process: a double that comes after a restart is handled. Of two that come
// at once the second waits for the first, on its worker, and is handled where the
// first one fails; where its context ends before, it is retried.
func Deduplicate(header string, most int, keep time.Duration) func(host.Next) host.Next {
	switch {
	case header == "":
		return refuse("middleware.Deduplicate: it has no header")
	case most < 1:
		return refuse("middleware.Deduplicate: %d is no number of ids", most)
	case keep <= 0:
		return refuse("middleware.Deduplicate: %v is no time", keep)
	}
	return func(next host.Next) host.Next {
		d := &doubles{most: most, keep: keep, byID: make(map[string]*handled)}
		return func(ctx context.Context, m host.Incoming) error {
			id := m.Header(header)
			if id == "" {
				return next(ctx, m)
			}
			h, double, err := d.begin(ctx, id)
			if double || err != nil {
				return err
			}
			done := false
			defer func() { d.end(h, done) }() // whatever the handler throws
			if err := next(ctx, m); err != nil {
				return err
			}
			m.OnNotAcked(func(error) { d.forget(h) })
			done = true
			return nil
		}
	}
}

// doubles remembers what one subscription has handled.
type doubles struct {
	most int
	keep time.Duration

	mu   sync.Mutex
	byID map[string]*handled
	old  []*handled // those that are done, the oldest first
}

// handled is an id that is or was handled.
type handled struct {
	id   string
	done bool
	at   time.Time     // when it was done
	over chan struct{} // closed when it is done or has failed
}

// begin takes an id in hand, or says that it was handled before. It waits for
// another one that has it in hand.
func (d *doubles) begin(ctx context.Context, id string) (h *handled, double bool, err error) {
	for {
		d.mu.Lock()
		d.expire()
		other := d.byID[id]
		if other == nil {
			h = &handled{id: id, over: make(chan struct{})}
			d.byID[id] = h
			d.mu.Unlock()
			return h, false, nil
		}
		done := other.done
		d.mu.Unlock()
		if done {
			return nil, true, nil
		}
		select {
		case <-other.over:
		case <-ctx.Done():
			return nil, false, fmt.Errorf("wait for the message of the same id %q: %w", id, ctx.Err())
		}
	}
}

// end gives an id back, to be remembered or not.
func (d *doubles) end(h *handled, done bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(h.over)
	if !done {
		d.drop(h)
		return
	}
	h.done, h.at = true, time.Now()
	d.old = append(d.old, h)
	if len(d.old) > d.most {
		d.dropOldest()
	}
}

// forget forgets an id that was handled in vain.
func (d *doubles) forget(h *handled) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop(h)
}

// expire forgets what is too old. d.mu is held.
func (d *doubles) expire() {
	now := time.Now()
	for len(d.old) > 0 && now.Sub(d.old[0].at) >= d.keep {
		d.dropOldest()
	}
}

// dropOldest forgets the oldest. d.mu is held.
func (d *doubles) dropOldest() {
	d.drop(d.old[0])
	d.old[0] = nil
	d.old = d.old[1:]
}

// drop forgets one, unless its id is somebody else's by now. d.mu is held.
func (d *doubles) drop(h *handled) {
	if d.byID[h.id] == h {
		delete(d.byID, h.id)
	}
}
