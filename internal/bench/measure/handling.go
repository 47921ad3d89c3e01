// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/bench/source"
)

// The ways to handle deliveries in a service. Each gets the same messages: an
// order of 512 B as JSON, 3 headers, 64 partition keys in turn.
const (
	Raw       = "raw" // the payload as it is
	JSON      = "JSON, 5 fields"
	Batch     = "raw, batch of 64"
	BatchJSON = "JSON, batch of 64"
	ByKey     = "raw, by key, 8 workers"
	// Decoding is no handling: it is what encoding/json alone takes for the same
	// payloads.
	Decoding = "(encoding/json alone)"
)

// Handlings are all of them; the others are compared with the first.
func Handlings() []string { return []string{Raw, JSON, Decoding, Batch, BatchJSON, ByKey} }

// handled are the messages of handlings.
var handled = source.Options{Frame: Base.Frame, Payload: Base.Payload, Headers: Base.Headers, JSON: true, Keys: 64}

// What the rows are named for.
const (
	batchSize = 64
	workers   = 8
	batchWait = 10 * time.Millisecond
)

// declare declares the handler of a handling.
func declare(name string, s *host.Subscription, n *atomic.Uint64) error {
	switch name {
	case Raw:
		host.Handle(s, func(_ context.Context, m *host.Message[[]byte]) error { return one(n, len(m.Value) == 0) })
	case JSON:
		host.Handle(s, func(_ context.Context, m *host.Message[source.Order]) error { return one(n, !m.Value.Paid) })
	case Batch:
		host.HandleBatch(s, batchSize, batchWait, func(_ context.Context, ms []*host.Message[[]byte]) []error {
			return several(n, ms, func(m *host.Message[[]byte]) bool { return len(m.Value) == 0 })
		})
	case BatchJSON:
		host.HandleBatch(s, batchSize, batchWait, func(_ context.Context, ms []*host.Message[source.Order]) []error {
			return several(n, ms, func(m *host.Message[source.Order]) bool { return !m.Value.Paid })
		})
	case ByKey:
		host.Handle(s, func(_ context.Context, m *host.Message[[]byte]) error { return one(n, len(m.Value) == 0) },
			host.Workers(workers), host.ByKey())
	default:
		return fmt.Errorf("no handling %q", name)
	}
	return nil
}

// one counts a message, unless it is not what was sent.
func one(n *atomic.Uint64, empty bool) error {
	if empty {
		return host.Drop(errEmpty)
	}
	n.Add(1)
	return nil
}

// several counts a batch, unless one of it is not what was sent.
func several[T any](n *atomic.Uint64, ms []*host.Message[T], empty func(*host.Message[T]) bool) []error {
	for _, m := range ms {
		if empty(m) {
			return make([]error, 0) // the wrong length is told, and nothing is counted
		}
	}
	n.Add(uint64(len(ms)))
	return nil
}

// handling measures one way to handle.
func handling(ctx context.Context, plugin, name string, d time.Duration) (Sample, error) {
	if name == Decoding {
		return decoding(ctx, d)
	}
	var unknown error
	s, err := serve(ctx, plugin, handled, Base.Window, d, func(s *host.Subscription, n *atomic.Uint64) {
		unknown = declare(name, s, n)
	})
	if unknown != nil {
		err = unknown
	}
	if err != nil {
		return Sample{}, fmt.Errorf("measure handling %s: %w", name, err)
	}
	return s, nil
}

// decoding measures encoding/json on this goroutine.
func decoding(ctx context.Context, d time.Duration) (Sample, error) {
	payloads := handled.Payloads()
	before, err := source.Used()
	if err != nil {
		return Sample{}, err
	}
	n, at := 0, time.Now()
	for ctx.Err() == nil && time.Since(at) < d {
		for _, p := range payloads {
			var v source.Order
			if err := json.Unmarshal(p, &v); err != nil {
				return Sample{}, err
			}
			n++
		}
	}
	took := time.Since(at)
	after, err := source.Used()
	return sample(float64(n), took, after.Since(before)), errors.Join(ctx.Err(), err)
}

// HandlingReport is one way to handle.
type HandlingReport struct {
	Name    string   `json:"name"`
	Samples []Sample `json:"samples"`
	Median  Sample   `json:"median"`
	// Ratios to the first one, of the same round: of rates and of the host's CPU.
	Rate float64 `json:"rate_ratio"`
	CPU  float64 `json:"cpu_ratio"`
}

// finishHandlings computes medians and ratios.
func finishHandlings(hs []HandlingReport) {
	for i := range hs {
		h := &hs[i]
		h.Median = medians(h.Samples)
		h.Rate = ratio(h.Samples, hs[0].Samples, func(s Sample) float64 { return s.Rate })
		h.CPU = ratio(h.Samples, hs[0].Samples, func(s Sample) float64 { return s.HostCPU })
	}
}

// writeHandlings writes their table.
func writeHandlings(w *strings.Builder, hs []HandlingReport) {
	if len(hs) == 0 {
		return
	}
	fmt.Fprintf(w, "\nhandler (%d B of JSON + %d)\tmessages/s\tx raw\tns CPU host\tx raw\tallocs host\n", handled.Payload, handled.Headers)
	for _, h := range hs {
		fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.0f\t%.2f\t%.2f\n", h.Name, h.Median.Rate, h.Rate, h.Median.HostCPU*1e3, h.CPU, h.Median.HostAllocs)
	}
}
