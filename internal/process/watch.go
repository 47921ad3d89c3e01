// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// watch is the host's side of Supervise for one generation: it beats, and
// keeps the last of what the plugin reports.
type watch struct {
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	lost   chan struct{} // closed when the stream has ended
	err    error         // why; valid once lost is closed
	news   chan struct{} // holds one when there is something to take

	answered atomic.Uint64

	mu     sync.Mutex
	link   *transportpb.LinkState
	resume []byte
	fresh  bool // resume was not taken
}

func newWatch(g Generation) *watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch{cancel: cancel, lost: make(chan struct{}), news: make(chan struct{}, 1)}
	stream, err := g.Link().Supervise(ctx)
	if err != nil {
		w.err = err
		close(w.lost)
		return w
	}
	w.tasks.Go(func() { w.receive(stream) })
	if h, ok := g.(heart); ok {
		w.tasks.Go(func() { w.beat(ctx, stream, h) })
	}
	return w
}

// stop ends the stream and waits for its goroutines.
func (w *watch) stop() {
	w.cancel()
	w.tasks.Wait()
}

func (w *watch) receive(stream link.SuperviseStream) {
	defer close(w.lost)
	for {
		r, err := stream.Recv()
		if err != nil {
			w.err = err
			return
		}
		switch part := r.GetPart().(type) {
		case *transportpb.SuperviseResponse_Beat:
			w.answered.Store(part.Beat)
		case *transportpb.SuperviseResponse_Link:
			w.mu.Lock()
			w.link = part.Link
			w.mu.Unlock()
			w.tell()
		case *transportpb.SuperviseResponse_Resume:
			w.mu.Lock()
			w.resume, w.fresh = part.Resume, true
			w.mu.Unlock()
			w.tell()
		}
	}
}

func (w *watch) tell() {
	select {
	case w.news <- struct{}{}:
	default: // it is told already
	}
}

func (w *watch) takeLink() *transportpb.LinkState {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.link
	w.link = nil
	return l
}

func (w *watch) takeResume() ([]byte, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ok := w.fresh
	w.fresh = false
	return w.resume, ok
}

// beat sets the plugin's log level, sends heartbeats, and hangs a plugin that
// answers none.
func (w *watch) beat(ctx context.Context, stream link.SuperviseStream, h heart) {
	every, limit, level := h.Heartbeats()
	err := stream.Send(&transportpb.SuperviseRequest{Part: &transportpb.SuperviseRequest_LogLevel{LogLevel: level}})
	if err != nil || every <= 0 {
		return // the receiver learns of the error
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	count := pulse{every: every, last: time.Now()}
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.lost:
			return
		case <-ticker.C:
		}
		if count.tick(time.Now(), w.answered.Load()) >= limit {
			h.Hang()
			return
		}
		count.sent++
		if err := stream.Send(&transportpb.SuperviseRequest{Part: &transportpb.SuperviseRequest_Beat{Beat: count.sent}}); err != nil {
			return
		}
	}
}

// pulse counts missed heartbeats in ticks in which this host itself ran. Real
// time would kill every plugin after the host was suspended.
type pulse struct {
	every  time.Duration
	last   time.Time
	sent   uint64
	seen   uint64 // the last answer
	missed int
}

// tick notes a tick and returns how many heartbeats are missed.
func (p *pulse) tick(now time.Time, answered uint64) int {
	ran := now.Sub(p.last) < 2*p.every
	p.last = now
	switch {
	case answered > p.seen || answered == p.sent:
		p.seen, p.missed = answered, 0
	case ran:
		p.missed++
	}
	return p.missed
}

// deathWait is how long after the end of its stream a generation may still be
// seen alive that has died, or is about to.
const deathWait = 250 * time.Millisecond

// settle waits a moment for the death that the end of the stream announces.
func (w *watch) settle(g Generation) {
	if closed(w.lost) {
		within(context.Background(), g.Done(), deathWait)
	}
}
