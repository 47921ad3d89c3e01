// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// The bounds of waiting copies (D3), and what is counted beside their messages;
// BenchmarkWaitingCopies measures it.
const (
	waitingMessages = 100_000
	waitingBytes    = 256 << 20
	// waitingOverhead is the record of a copy and its place in the list.
	waitingOverhead = 320
	// waitingMore is what is kept of a copy that is large, in the journal, or that
	// LaneOptions.Finished is told of, beside messages and texts.
	waitingMore = 384
	// waitingOpen is what a copy takes while it is being published: its plan, and
	// its place in the outbox.
	waitingOpen = 2 << 10
	// shareForOthers is the part of the room that one lane leaves to others: one
	// whose every delivery is to be tried later would take all of it.
	shareForOthers = 4
	// openLeast is how many copies are published at a time however little room there
	// is.
	openLeast = 256
	// dueAtOnce is how many due copies are begun before the clock's other alarms
	// have their turn.
	dueAtOnce = 256
)

// WaitingOptions bound the waiting copies of a host. Bytes are what the copies
// take in memory: payloads and headers, an eighth more for what the allocator
// rounds up, and 320 B a copy; 384 B more for a large one, for one in the journal,
// and for one that LaneOptions.Finished is told of, with the message and the stack
// where those are kept; 1 KiB for each destination of copies, and 2 KiB for each
// copy that is due and being published. Errors that handlers return are not
// counted. A copy that is due while the bytes are used up waits for room, unless
// fewer than 256 are being published.
type WaitingOptions struct {
	Logger   *slog.Logger
	Messages int   // default 100,000
	Bytes    int64 // default 256 MiB
}

// Waiting holds the delayed copies of a host, and the clock of everything that
// waits. A copy counts from the decision on until it is published, parked or
// lost. While it waits it is a record; when it is due, or a stop cuts it, it
// becomes the settlement again that it was.
type Waiting struct {
	o     WaitingOptions
	clock *clock
	alarm alarm // rings when the first copy is due
	base  time.Time

	mu       sync.Mutex
	room     room         // taken
	sharers  atomic.Int32 // lanes, of which none may take all of it
	laid     laid         // copies that wait
	doomed   []*parcel
	open     []*settlement // copies that are being published
	scenes   map[core.Case]*scene
	starved  bool                  // one that is due waits for room
	lost     map[WaitingCopies]int // cut off, not said yet
	draining bool
	cutsAll  bool
	bell     chan struct{} // closed when there is more room; nil = nobody waits

	restoring sync.WaitGroup
	closing   context.CancelFunc
	life      context.Context
	lanes     map[WaitingCopies]*Lane // of copies of former runs
}

// WaitingCopies are the waiting copies of one subscription.
type WaitingCopies struct {
	Endpoint     string
	Subscription string
	Count        int
}

// NewWaiting returns an empty one. It starts its clock's goroutine.
func NewWaiting(o WaitingOptions) *Waiting {
	if o.Messages <= 0 {
		o.Messages = waitingMessages
	}
	if o.Bytes <= 0 {
		o.Bytes = waitingBytes
	}
	w := &Waiting{
		o: o, clock: newClock(), base: time.Now(), scenes: make(map[core.Case]*scene),
		lost: make(map[WaitingCopies]int), lanes: make(map[WaitingCopies]*Lane),
	}
	w.alarm.ring = w.due
	w.life, w.closing = context.WithCancel(context.Background())
	return w
}

// Len returns the number of copies that wait or are being published.
func (w *Waiting) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.len()
}

// len is Len with w.mu held.
func (w *Waiting) len() int { return len(w.laid) + len(w.doomed) + len(w.open) }

// List returns what waits or is being published, by subscription.
func (w *Waiting) List() []WaitingCopies {
	w.mu.Lock()
	lanes := make(map[*Lane]int)
	for _, ps := range [][]*parcel{w.laid, w.doomed} {
		for _, p := range ps {
			lanes[p.l]++
		}
	}
	for _, s := range w.open {
		lanes[s.l]++
	}
	w.mu.Unlock()
	count := make(map[WaitingCopies]int)
	for l, n := range lanes {
		count[of(l)] += n
	}
	return listed(count)
}

// of names the subscription of a lane.
func of(l *Lane) WaitingCopies {
	return WaitingCopies{Endpoint: l.o.Endpoint, Subscription: l.o.Subscription}
}

// listed sorts counts by subscription.
func listed(count map[WaitingCopies]int) []WaitingCopies {
	out := make([]WaitingCopies, 0, len(count))
	for c, n := range count {
		c.Count = n
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b WaitingCopies) int {
		return cmp.Or(cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Subscription, b.Subscription))
	})
	return out
}

// reserve takes room for a copy of n bytes of l. It reports false when there is
// none, or when l has its share of it.
func (w *Waiting) reserve(l *Lane, n int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.room.messages >= w.o.Messages || w.room.bytes >= w.o.Bytes {
		return false
	}
	if w.sharers.Load() > 1 && (l.waiting.messages >= w.o.Messages-w.o.Messages/shareForOthers ||
		l.waiting.bytes >= w.o.Bytes-w.o.Bytes/shareForOthers) {
		return false
	}
	w.use(l, 1, n)
	return true
}

// use counts room that copies of l take, or give back. w.mu is held.
func (w *Waiting) use(l *Lane, messages int, bytes int64) {
	w.room.messages += messages
	w.room.bytes += bytes
	l.waiting.messages += messages
	l.waiting.bytes += bytes
}

// release gives room back.
func (w *Waiting) release(l *Lane, n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free(l, n)
}

// free gives the room of a copy back. w.mu is held.
func (w *Waiting) free(l *Lane, n int64) {
	w.use(l, -1, -n)
	if w.starved && w.opens() {
		w.starved = false
		w.clock.set(&w.alarm, time.Now())
	}
	w.ring()
}

// ring tells who waits for room, or for the end of the copies. w.mu is held.
func (w *Waiting) ring() {
	if w.bell != nil {
		close(w.bell)
		w.bell = nil
	}
}

// until waits until ready, which is asked with w.mu held, says true.
func (w *Waiting) until(ctx context.Context, ready func() bool) error {
	for {
		w.mu.Lock()
		if ready() {
			w.mu.Unlock()
			return nil
		}
		if w.bell == nil {
			w.bell = make(chan struct{})
		}
		bell := w.bell
		w.mu.Unlock()
		select {
		case <-bell:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// rounded is what n bytes take at most, which the allocator rounds up.
func rounded(n int) int64 { return int64(n + n/8) }

// reserve takes room for a waiting copy of this delivery before the plan is
// made, so that the plan knows whether there is any.
func (s *settlement) reserve() {
	n := waitingOverhead + rounded(frame.Weight(&s.d.Message))
	if s.l.o.Waiting.reserve(s.l, n) {
		s.reserved = n
	} else {
		s.c.Full = true
	}
}
