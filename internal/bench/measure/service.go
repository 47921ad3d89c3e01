// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/bench/source"
)

// Service is a whole service: the hop, and behind it dispatch, plan and
// execution for a handler that takes the payload as it is.
const Service = "service"

// service measures a row with a host of its own.
func service(ctx context.Context, plugin string, row Row, d time.Duration) (Sample, error) {
	o := source.Options{Frame: row.Frame, Payload: row.Payload, Headers: row.Headers}
	return serve(ctx, plugin, o, row.Window, d, func(s *host.Subscription, handled *atomic.Uint64) {
		host.Handle(s, func(_ context.Context, m *host.Message[[]byte]) error {
			if len(m.Value) != row.Payload {
				return host.Drop(errEmpty)
			}
			handled.Add(1)
			return nil
		})
	})
}

// serve measures a host of its own with one subscription, whose handler is
// declared by declare and counts what it has handled.
func serve(ctx context.Context, plugin string, o source.Options, window int, d time.Duration,
	declare func(s *host.Subscription, handled *atomic.Uint64)) (s Sample, err error) {
	var handled atomic.Uint64
	h, e := newHost(plugin)
	declare(e.Subscription("bench", host.Options(o), host.Window(window, windowBytes)), &handled)
	ran := runHost(ctx, h)
	s, err = count(ctx, &handled, ran, d)
	return s, errors.Join(err, ran.end())
}

// newHost returns a silent host with the plugin as its endpoint.
func newHost(plugin string, opts ...host.Option) (*host.Host, *host.Endpoint) {
	h := host.New(append(opts, host.WithStartLimit(startLimit), host.WithDrainLimit(endLimit), host.WithLogger(slog.New(slog.DiscardHandler)))...)
	return h, h.Endpoint("bench", host.Plugin{Name: "bench", Path: plugin}, nil)
}

// running is a host that runs.
type running struct {
	stop context.CancelFunc
	over chan struct{}
	err  error // of Run, once over is closed
}

// runHost runs h until end is called.
func runHost(ctx context.Context, h *host.Host) *running {
	ctx, stop := context.WithCancel(ctx)
	r := &running{stop: stop, over: make(chan struct{})}
	go func() {
		defer close(r.over)
		r.err = h.Run(ctx)
	}()
	return r
}

// end stops the host and returns what Run did.
func (r *running) end() error {
	r.stop()
	<-r.over
	return r.err
}

// lookEvery is how often until asks.
const lookEvery = time.Millisecond

// untilLimit is how long until waits, many times what any of it takes.
const untilLimit = 2 * time.Minute

// until waits until done says true.
func (r *running) until(ctx context.Context, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, untilLimit)
	defer cancel()
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for !done() {
		select {
		case <-r.over:
			return errors.New("host ended by itself")
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
	return nil
}

// count waits for the first message and counts for d after a warm-up. The
// plugin's own usage is not known.
func count(ctx context.Context, handled *atomic.Uint64, r *running, d time.Duration) (Sample, error) {
	if err := r.until(ctx, func() bool { return handled.Load() > 0 }); err != nil {
		return Sample{}, err
	}
	if err := sleep(ctx, warmUp); err != nil {
		return Sample{}, err
	}
	before, err := source.Used()
	if err != nil {
		return Sample{}, err
	}
	at, first := time.Now(), handled.Load()
	if err := sleep(ctx, d); err != nil {
		return Sample{}, err
	}
	if err := r.until(ctx, func() bool { return handled.Load() > first }); err != nil {
		return Sample{}, err
	}
	n, took := float64(handled.Load()-first), time.Since(at)
	after, err := source.Used()
	return sample(n, took, after.Since(before)), err
}

// sample is what n messages took of this process.
func sample(n float64, took time.Duration, used source.Usage) Sample {
	return Sample{
		Rate:       n / took.Seconds(),
		HostCPU:    float64(used.CPU.Nanoseconds()) / 1e3 / n,
		HostAllocs: float64(used.Allocs) / n,
	}
}
