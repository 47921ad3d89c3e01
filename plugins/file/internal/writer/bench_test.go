// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/longshore-go/longshore/core"
)

// benchDir is a folder in memory, where there is one: the disk is not measured.
func benchDir(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "writer")
	if err != nil {
		return b.TempDir()
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func BenchmarkAppend(b *testing.B) {
	three := core.Headers{
		{Name: "content-type", Value: []byte("application/json")},
		{Name: "x-tenant", Value: []byte("acme")},
		{Name: "correlation-id", Value: []byte("8f14e45f-ceea-467f-a0c2-5b4d3ab1a9d7")},
	}
	for _, kind := range []struct {
		name    string
		size    int
		headers core.Headers
	}{{"512", 512, nil}, {"512h", 512, three}, {"16K", 16 << 10, nil}} {
		for _, batch := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, batch), func(b *testing.B) {
				path := filepath.Join(benchDir(b), "orders.ss")
				open := func() *Writer {
					w, err := Open(context.Background(), path, Options{MaxBytes: 1 << 40})
					if err != nil {
						b.Fatal(err)
					}
					return w
				}
				w := open()
				entries := make([]Entry, batch)
				for i := range entries {
					entries[i] = Entry{Key: "orders", Headers: kind.headers, Payload: bytes.Repeat([]byte("x"), kind.size)}
				}
				done := func(_ int, _ uint64, err error) {
					if err != nil {
						b.Error(err)
					}
				}
				b.ReportAllocs()
				b.SetBytes(int64(batch * kind.size))
				for b.Loop() {
					w.Append(entries, done)
					if w.size > 256<<20 { // the memory is not to be filled
						b.StopTimer()
						_ = w.Close(context.Background())
						_ = os.Remove(path)
						w = open()
						b.StartTimer()
					}
				}
				b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "records/s")
				_ = w.Close(context.Background())
			})
		}
	}
}

// BenchmarkAppendEach writes to the disk of the tests and waits for it, many
// publishers at a time.
func BenchmarkAppendEach(b *testing.B) {
	for _, inflight := range []int{1, 64, 1024} {
		b.Run(fmt.Sprint(inflight), func(b *testing.B) {
			w, err := Open(context.Background(), filepath.Join(b.TempDir(), "orders.ss"), Options{Sync: SyncEach})
			if err != nil {
				b.Fatal(err)
			}
			room := make(chan struct{}, inflight)
			entry := []Entry{{Key: "orders", Payload: bytes.Repeat([]byte("x"), 512)}}
			done := func(_ int, _ uint64, err error) {
				if err != nil {
					b.Error(err)
				}
				<-room
			}
			b.ReportAllocs()
			for b.Loop() {
				room <- struct{}{}
				w.Append(entry, done)
			}
			for range inflight {
				room <- struct{}{}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			_ = w.Close(context.Background())
		})
	}
}
