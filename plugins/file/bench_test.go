// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// loads are what the benchmarks carry.
var loads = []struct {
	name    string
	payload int
	headers []string
}{
	{"512 B", 512, nil},
	{"512 B with a header", 512, []string{"x-tenant", "acme"}},
	{"16 KiB", 16 << 10, nil},
}

// BenchmarkReceive reads a file as the SDK asks for it, in the window that hosts
// give and without the hop to them.
func BenchmarkReceive(b *testing.B) {
	for _, load := range loads {
		b.Run(load.name, func(b *testing.B) {
			const records = 4096
			e := open(b, settings.Settings{Path: newPath(b)}, writes("k"))
			batch := make([]pluginapi.Outgoing, records)
			for i := range batch {
				batch[i] = servicetest.Message("k", strings.Repeat("p", load.payload), load.headers...)
			}
			e.publish(batch...)
			var k kept
			e.conn.(pluginapi.Resumer).ReportResume(k.keep)
			b.SetBytes(int64(load.payload))
			b.ReportAllocs()
			s := e.subscribe("k", settings.Subscription{})
			left := 0
			for n := 0; b.Loop(); n-- {
				if n > 0 {
					continue
				}
				if left == 0 {
					left = records
					if err := s.(pluginapi.Seeker).Seek(e.ctx, pluginapi.Position{Kind: pluginapi.PositionBeginning}); err != nil {
						b.Fatal(err)
					}
				}
				got, err := s.Receive(e.ctx, pluginapi.Room{Messages: min(left, 64), Bytes: 8 << 20})
				if err != nil {
					b.Fatal(err)
				}
				n += len(got.Deliveries)
				left -= len(got.Deliveries)
			}
			closeSub(b, s)
		})
	}
}

// BenchmarkPublish appends as many messages at a time as a publisher that does
// not wait has under way.
func BenchmarkPublish(b *testing.B) {
	for _, load := range loads {
		for _, size := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s, %d at a time", load.name, size), func(b *testing.B) {
				e := open(b, settings.Settings{Path: newPath(b)}, writes("k"))
				batch := make([]pluginapi.Outgoing, size)
				for i := range batch {
					batch[i] = servicetest.Message("k", strings.Repeat("p", load.payload), load.headers...)
				}
				b.SetBytes(int64(load.payload))
				b.ReportAllocs()
				confirmed := func(_ int, r pluginapi.Receipt) {
					if r.Fault != nil {
						b.Fatal(r.Fault)
					}
				}
				for n := 0; b.Loop(); n-- {
					if n > 0 {
						continue
					}
					e.conn.Publish(e.ctx, batch, confirmed)
					n += size
				}
			})
		}
	}
}
