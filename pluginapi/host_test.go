// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// soon is how long a test waits for what has to come.
const soon = 2 * time.Minute

// bench is a server behind a local link, driven the way a host does.
type bench struct {
	tb     testing.TB
	server *server
	link   *link.LocalLink
	ctx    context.Context
	level  *slog.LevelVar
}

// serve starts a server for t. It is closed and its calls are waited for when
// the test ends.
func serve(tb testing.TB, t Transport) *bench {
	tb.Helper()
	return serveWithin(tb, t, soon)
}

// serveWithin is serve with a limit for the author's code.
func serveWithin(tb testing.TB, t Transport, limit time.Duration) *bench {
	tb.Helper()
	level := new(slog.LevelVar)
	s := newServer(t, serverOptions{Logger: slog.New(slog.DiscardHandler), Level: level, AuthorLimit: limit})
	ctx, cancel := context.WithCancel(context.Background())
	b := &bench{tb: tb, server: s, link: link.Local(s), ctx: ctx, level: level}
	tb.Cleanup(func() {
		b.link.Break(errors.New("test has ended"))
		cancel()
		wait, done := context.WithTimeout(context.Background(), soon)
		defer done()
		gone, end := context.WithCancel(context.Background())
		end()
		s.abandonWithin(gone, time.Second)
		if err := b.link.Wait(wait); err != nil {
			tb.Errorf("server still runs: %v", err)
		}
	})
	return b
}

// connect brings the endpoint up.
func (b *bench) connect() *bench {
	b.tb.Helper()
	if r, err := b.link.Configure(b.ctx, &transportpb.ConfigureRequest{Endpoint: "e", Generation: 1}); err != nil || r.GetFault() != nil {
		b.tb.Fatalf("Configure: %v %v", err, r.GetFault())
	}
	if _, err := b.link.Connect(b.ctx, &transportpb.ConnectRequest{}); err != nil {
		b.tb.Fatalf("Connect: %v", err)
	}
	return b
}

// drive returns a link to a connected server, for property tests, whose ends
// cannot wait for the test's.
func drive(tb testing.TB, t Transport) (*link.LocalLink, func()) {
	tb.Helper()
	s := newServer(t, serverOptions{AuthorLimit: soon})
	l := link.Local(s)
	if _, err := l.Configure(tb.Context(), &transportpb.ConfigureRequest{}); err != nil {
		tb.Fatalf("Configure: %v", err)
	}
	if _, err := l.Connect(tb.Context(), &transportpb.ConnectRequest{}); err != nil {
		tb.Fatalf("Connect: %v", err)
	}
	return l, func() {
		l.Break(errors.New("round has ended"))
		s.abandon(tb.Context())
		if err := l.Wait(tb.Context()); err != nil {
			tb.Errorf("server still runs: %v", err)
		}
	}
}

// stream is the host's side of one subscription. Its reader keeps all that
// comes; deliveries are copied.
type stream struct {
	tb     testing.TB
	s      link.SubscribeStream
	cancel context.CancelFunc

	mu       sync.Mutex
	started  *transportpb.Started
	items    []frame.Delivery
	frames   []int // messages of each frame
	settled  []frame.SettleResult
	voids    []*transportpb.Void
	reports  []*transportpb.Report
	sought   []*transportpb.Sought
	order    []string
	caughtUp int
	ended    []*transportpb.Ended
	err      error // after io.EOF: io.EOF
	changed  chan struct{}
}

// subscribe opens a subscription and waits for Started.
func (b *bench) subscribe(name string) *stream {
	b.tb.Helper()
	st := b.open(&transportpb.Registration{Name: name})
	st.wait("Started", func() bool { return st.started != nil })
	return st
}

// open opens a subscription.
func (b *bench) open(r *transportpb.Registration) *stream {
	b.tb.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	s, err := b.link.Subscribe(ctx)
	if err != nil {
		b.tb.Fatalf("Subscribe: %v", err)
	}
	st := &stream{tb: b.tb, s: s, cancel: cancel, changed: make(chan struct{}, 1)}
	st.send(&frame.SubscribeRequest{Start: &transportpb.SubscribeStart{Registration: r}})
	done := make(chan struct{})
	go func() { defer close(done); st.read() }()
	b.tb.Cleanup(func() { cancel(); <-done })
	return st
}

func (st *stream) read() {
	for {
		var r frame.SubscribeResponse
		err := st.s.Recv(&r)
		st.mu.Lock()
		switch {
		case err != nil:
			st.err = err
		case r.Started != nil:
			st.started = r.Started
			st.order = append(st.order, "started")
		case r.Deliveries != nil:
			st.frames = append(st.frames, len(r.Deliveries.Items))
			for _, d := range r.Deliveries.Items {
				d.Message = clone(d.Message)
				st.items = append(st.items, d)
			}
			st.order = append(st.order, "deliveries")
			r.Deliveries.Release()
		case r.Settled != nil:
			st.settled = append(st.settled, r.Settled...)
		case r.Void != nil:
			st.voids = append(st.voids, r.Void)
			st.order = append(st.order, "void")
		case r.Sought != nil:
			st.sought = append(st.sought, r.Sought)
			st.order = append(st.order, "sought")
		case r.Report != nil:
			st.reports = append(st.reports, r.Report)
			st.order = append(st.order, "report")
		case r.CaughtUp:
			st.caughtUp++
			st.order = append(st.order, "caught up")
		case r.Ended != nil:
			st.ended = append(st.ended, r.Ended)
			st.order = append(st.order, "ended")
		}
		st.mu.Unlock()
		select {
		case st.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// wait waits for what has to come.
func (st *stream) wait(what string, is func() bool) {
	st.tb.Helper()
	limit := time.NewTimer(soon)
	defer limit.Stop()
	for {
		st.mu.Lock()
		ok, err := is(), st.err
		st.mu.Unlock()
		if ok {
			return
		}
		if err != nil && !errors.Is(err, io.EOF) {
			st.mu.Lock()
			ok = is()
			st.mu.Unlock()
			if !ok {
				st.tb.Fatalf("wait for %s: stream ended: %v", what, err)
			}
			return
		}
		select {
		case <-st.changed:
		case <-limit.C:
			st.mu.Lock()
			defer st.mu.Unlock()
			st.tb.Fatalf("wait for %s: order %v, %d deliveries, settled %v", what, st.order, len(st.items), st.settled)
		}
	}
}

// got waits for n deliveries and returns all there are.
func (st *stream) got(n int) []frame.Delivery {
	st.tb.Helper()
	st.wait("deliveries", func() bool { return len(st.items) >= n })
	st.mu.Lock()
	defer st.mu.Unlock()
	return append([]frame.Delivery(nil), st.items...)
}

// results waits for n answers, counted by delivery, and returns them by id.
func (st *stream) results(n int) map[uint64]frame.SettleStatus {
	st.tb.Helper()
	count := func() int {
		c := 0
		for _, r := range st.settled {
			c += int(max(r.Count, 1))
		}
		return c
	}
	st.wait("results", func() bool { return count() >= n })
	st.mu.Lock()
	defer st.mu.Unlock()
	out := make(map[uint64]frame.SettleStatus)
	for _, r := range st.settled {
		for i := range min(max(r.Count, 1), 1000) {
			out[r.First+i] = r.Status
		}
	}
	return out
}

func (st *stream) send(r *frame.SubscribeRequest) {
	st.tb.Helper()
	if err := st.s.Send(r); err != nil {
		st.tb.Fatalf("send: %v", err)
	}
}

func (st *stream) credit(messages, bytes uint64) {
	st.tb.Helper()
	st.send(&frame.SubscribeRequest{Credit: &frame.Credit{Messages: messages, Bytes: bytes}})
}

func (st *stream) settle(runs ...frame.VerdictRun) {
	st.tb.Helper()
	st.send(&frame.SubscribeRequest{Settle: runs})
}

// finish stops, half-closes and waits for the orderly end.
func (st *stream) finish() {
	st.tb.Helper()
	st.send(&frame.SubscribeRequest{Stop: true})
	st.wait("Ended", func() bool { return len(st.ended) > 0 })
	if err := st.s.CloseSend(); err != nil {
		st.tb.Fatalf("close send: %v", err)
	}
	st.wait("end of stream", func() bool { return st.err != nil })
	st.mu.Lock()
	defer st.mu.Unlock()
	if !errors.Is(st.err, io.EOF) {
		st.tb.Fatalf("stream ended with %v", st.err)
	}
}

// eventually polls a condition that nothing signals.
func eventually(tb testing.TB, what string, is func() bool) {
	tb.Helper()
	deadline := time.Now().Add(soon)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is() {
		if time.Now().After(deadline) {
			tb.Fatalf("wait for %s", what)
		}
		<-tick.C
	}
}

func ack(id uint64) frame.VerdictRun {
	return frame.VerdictRun{First: id, Kind: core.VerdictAck, WantResult: true}
}
