// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/bench/peer"
	"github.com/longshore-go/longshore/internal/bench/source"
)

// zmqEnd is one end of a connection under measurement.
type zmqEnd interface {
	// address is where it listens, or what it dials.
	address() string
	ask() (peer.State, error)
	// plugin is the process of its plugin, 0 = it has none.
	plugin() int
	close() error
}

// peerEnd is a process of its own.
type peerEnd struct{ *peer.Process }

func (p peerEnd) address() string          { return p.Address }
func (p peerEnd) ask() (peer.State, error) { return p.Ask() }
func (p peerEnd) plugin() int              { return 0 }
func (p peerEnd) close() error             { return p.Close() }

// hostEnd is a host with its plugin: this process, and a child.
type hostEnd struct {
	at    string
	pid   atomic.Int64
	run   *running
	count atomic.Uint64 // messages handled, published or answered
	trips peer.Trips

	stop  context.CancelFunc
	tasks sync.WaitGroup
	err   error // of the task
}

// openHost starts a host for a row; window is that of its subscription, 0 for
// the default.
func openHost(ctx context.Context, plugin string, row ZeroMQRow, window int, at string) (*hostEnd, error) {
	e := &hostEnd{at: at}
	h := host.New(host.WithStartLimit(startLimit), host.WithDrainLimit(endLimit), host.WithLogger(slog.New(&pidHandler{pid: &e.pid})))
	settings := map[string]any{"pattern": map[string]string{Pull: "queue", Push: "queue", FanOut: "fan-out", Ask: "rpc"}[row.Kind]}
	if row.listens() {
		settings["bind"] = at
	} else {
		settings["connect"] = []string{at}
	}
	on := h.Endpoint("bench", host.Plugin{Name: "zmq", Path: plugin}, settings)
	var task func(ctx context.Context) error
	switch row.Kind {
	case Pull:
		e.handle(on.Subscription(key, host.Window(window, 0)), row)
	case Ask:
		task = func(ctx context.Context) error { return e.request(ctx, h, on.To(key), row) }
	default:
		to := host.To[core.Message](h, on.To(key), host.InFlight(Base.Window, openBytes))
		task = func(ctx context.Context) error { return e.publish(ctx, to, row) }
	}
	e.run = runHost(ctx, h)
	if err := e.run.until(ctx, func() bool { return h.Health().Ready }); err != nil {
		return nil, errors.Join(err, e.run.end())
	}
	if a := on.Addresses(); len(a) > 0 {
		e.at = a[0]
	}
	ctx, e.stop = context.WithCancel(ctx)
	if task != nil {
		e.tasks.Go(func() { e.err = task(ctx) })
	}
	return e, nil
}

// handle counts what comes, raw.
func (e *hostEnd) handle(s *host.Subscription, row ZeroMQRow) {
	host.Handle(s, func(_ context.Context, m *host.Message[[]byte]) error {
		return one(&e.count, len(m.Value) != row.Payload)
	})
}

// publish publishes as fast as there is room.
func (e *hostEnd) publish(ctx context.Context, to *host.Publisher[core.Message], row ZeroMQRow) error {
	messages := source.Options{Payload: row.Payload, Headers: row.Headers}.Messages()
	var last *host.Pending
	for i := 0; ctx.Err() == nil; i++ {
		p, err := to.PublishAsync(ctx, messages[i%len(messages)])
		if err != nil {
			return unexpected(ctx, err)
		}
		e.count.Add(1)
		last = p
	}
	if last == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	_, err := last.Receipt(ctx)
	return err
}

// request asks one thing after another.
func (e *hostEnd) request(ctx context.Context, h *host.Host, to core.Destination, row ZeroMQRow) error {
	payload := make([]byte, row.Payload)
	for ctx.Err() == nil {
		at := time.Now()
		reply, err := host.Request[[]byte, []byte](ctx, h, to, payload)
		if err != nil {
			return unexpected(ctx, err)
		}
		if len(reply) != row.Payload {
			return fmt.Errorf("reply of %d B", len(reply))
		}
		e.trips.Add(time.Since(at))
		e.count.Add(1)
	}
	return nil
}

func (e *hostEnd) address() string { return e.at }

func (e *hostEnd) ask() (s peer.State, err error) {
	select {
	case <-e.run.over:
		return s, errors.Join(errors.New("host ended by itself"), e.run.err)
	default:
	}
	used, err := source.Used()
	s = peer.State{CPU: used.CPU, Allocs: used.Allocs, Messages: e.count.Load()}
	s.P50, s.P99 = e.trips.Take()
	return s, err
}

func (e *hostEnd) plugin() int { return int(e.pid.Load()) }

func (e *hostEnd) close() error {
	e.stop()
	e.tasks.Wait()
	return errors.Join(e.err, e.run.end())
}

// pidHandler takes the plugin's process out of what a host logs, and discards
// the rest.
type pidHandler struct{ pid *atomic.Int64 }

func (h *pidHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *pidHandler) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "pid" {
			h.pid.Store(a.Value.Int64())
		}
		return true
	})
	return nil
}

func (h *pidHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h *pidHandler) WithGroup(string) slog.Handler { return h }
