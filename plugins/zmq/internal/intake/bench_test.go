// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/intake"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
)

// BenchmarkReceive reads what peers send over loopback as fast as they can, with
// memory that goes back at once.
func BenchmarkReceive(b *testing.B) {
	for _, size := range []int{64, 512, 16 << 10} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) { benchReceive(b, size, 1) })
	}
	b.Run("512B/peers=8", func(b *testing.B) { benchReceive(b, 512, 8) })
	b.Run("512B/peers=500", func(b *testing.B) { benchReceive(b, 512, 500) })
}

func benchReceive(b *testing.B, size, peers int) {
	in := listen(b, zmq4.Pull, intake.Options{}, nil)
	m := core.Message{
		Name: "orders", Payload: make([]byte, size),
		Headers: core.Headers{
			{Name: "content-type", Value: []byte("application/json")},
			{Name: "x-tenant", Value: []byte("acme")}, {Name: "correlation-id", Value: []byte("0123456789abcdef")},
		},
	}
	var raw []byte
	for len(raw) < 128<<10 {
		raw = message.Append(raw, &m, m.Name)
	}
	var sending sync.WaitGroup
	var conns []*remote
	for range peers {
		p := in.dial(zmq4.Push, "")
		conns = append(conns, p)
		sending.Go(func() {
			for {
				if _, err := p.nc.Write(raw); err != nil {
					return
				}
			}
		})
	}
	release(in.receive(wide))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	b.SetBytes(int64(size))
	b.ResetTimer()
	for n < b.N {
		batch, err := in.in.Receive(b.Context(), wide)
		if err != nil {
			b.Fatal(err)
		}
		n += len(batch.Deliveries)
		release(batch)
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(n), "allocs/message")
	for _, p := range conns {
		p.nc.Close()
	}
	in.close()
	sending.Wait()
}

// BenchmarkOwn passes a copy through the own queue.
func BenchmarkOwn(b *testing.B) {
	in := listen(b, zmq4.Pull, intake.Options{}, nil)
	m := core.Message{Name: "orders", Payload: make([]byte, 512)}
	b.ReportAllocs()
	for b.Loop() {
		if f := in.in.Own(m, pluginapi.PurposeRetry); f != nil {
			b.Fatal(f)
		}
		if _, err := in.in.Receive(b.Context(), wide); err != nil {
			b.Fatal(err)
		}
	}
}
