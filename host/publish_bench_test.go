// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory/memtest"
)

// BenchmarkPublishToAProcess compares waiting for each receipt with not waiting,
// through a plugin process and a broker behind it: 512 bytes a message.
func BenchmarkPublishToAProcess(b *testing.B) {
	for name, publish := range map[string]func(b *testing.B, p *host.Publisher[[]byte], payload []byte){
		"waiting": func(b *testing.B, p *host.Publisher[[]byte], payload []byte) {
			for b.Loop() {
				if _, err := p.Publish(b.Context(), payload); err != nil {
					b.Fatal(err)
				}
			}
		},
		"async": func(b *testing.B, p *host.Publisher[[]byte], payload []byte) {
			var last *host.Pending
			for b.Loop() {
				var err error
				if last, err = p.PublishAsync(b.Context(), payload); err != nil {
					b.Fatal(err)
				}
			}
			if _, err := last.Receipt(b.Context()); err != nil {
				b.Fatal(err)
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			bench := memtest.Start(b)
			s := newService()
			mem := s.Endpoint("mem", host.Plugin{Name: "memory", Path: bench.Path}, bench.Settings)
			p := host.To[[]byte](s.Host, mem.To("out"))
			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx) }()
			for !s.Ready() {
				time.Sleep(time.Millisecond)
			}
			b.ReportAllocs()
			publish(b, p, make([]byte, 512))
			stop()
			if err := <-ended; err != nil {
				b.Error(err)
			}
		})
	}
}
