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
func service(ctx context.Context, plugin string, row Row, d time.Duration) (s Sample, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var messages atomic.Uint64
	h := host.New(host.WithDrainLimit(endLimit), host.WithLogger(slog.New(slog.DiscardHandler)))
	e := h.Endpoint("bench", host.Plugin{Name: "bench", Path: plugin}, nil)
	options := map[string]any{"frame": row.Frame, "payload": row.Payload, "headers": row.Headers}
	host.Handle(e.Subscription("bench", host.Options(options), host.Window(row.Window, windowBytes)),
		func(_ context.Context, m *host.Message[[]byte]) error {
			if len(m.Value) != row.Payload {
				return host.Drop(errEmpty)
			}
			messages.Add(1)
			return nil
		})
	ran := make(chan error, 1)
	go func() { ran <- h.Run(ctx) }()
	s, err = count(ctx, &messages, ran, d)
	cancel()
	return s, errors.Join(err, <-ran)
}

// count waits for the first message and counts for d after a warm-up. The
// plugin's own usage is not known.
func count(ctx context.Context, messages *atomic.Uint64, ran chan error, d time.Duration) (Sample, error) {
	for messages.Load() == 0 {
		select {
		case err := <-ran:
			ran <- nil
			return Sample{}, errors.Join(err, errors.New("host ended by itself"))
		case <-time.NewTimer(time.Millisecond).C:
		}
	}
	if err := sleep(ctx, warmUp); err != nil {
		return Sample{}, err
	}
	before, err := source.Used()
	if err != nil {
		return Sample{}, err
	}
	at, first := time.Now(), messages.Load()
	if err := sleep(ctx, d); err != nil {
		return Sample{}, err
	}
	n, took := float64(messages.Load()-first), time.Since(at)
	after, err := source.Used()
	used := after.Since(before)
	return Sample{
		Rate:       n / took.Seconds(),
		HostCPU:    float64(used.CPU.Nanoseconds()) / 1e3 / n,
		HostAllocs: float64(used.Allocs) / n,
	}, err
}
