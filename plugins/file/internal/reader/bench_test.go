// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// BenchmarkReplay replays a file from the page cache, without a look at
// envelopes.
func BenchmarkReplay(b *testing.B) {
	for _, size := range []int{512, 16 << 10} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) { benchReplay(b, size, 1) })
	}
	b.Run("512B/keys=100", func(b *testing.B) { benchReplay(b, 512, 100) })
}

func benchReplay(b *testing.B, size, keys int) {
	const bytes = 64 << 20
	s := newStream(1<<20, created)
	n := bytes / (size + 40)
	for i := range n {
		key := fmt.Sprintf("orders%d", i%keys)
		s.add(key, payload(key, s.seqs[key]+1, size))
	}
	path := pathOf(b)
	s.write(b, path)
	r := open(b, path, Options{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	records := 0
	for b.Loop() {
		c := cursor(b, r, "orders*", Start{}, true)
		for {
			batch, err := c.Next(b.Context(), 1000, 0)
			if err != nil {
				b.Fatal(err)
			}
			records += len(batch.Records)
			if batch.CaughtUp {
				break
			}
		}
		c.Close()
	}
	runtime.ReadMemStats(&after)
	if records != n*b.N {
		b.Fatalf("%d records, want %d", records, n*b.N)
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(records), "allocs/record")
	b.SetBytes(int64(len(s.b)))
}

// BenchmarkTail is the way from a write to the cursor that waits for it, by a
// notification of the file system and by a poke.
func BenchmarkTail(b *testing.B) {
	for _, poke := range []bool{false, true} {
		b.Run(map[bool]string{false: "notified", true: "poked"}[poke], func(b *testing.B) {
			s := newStream(1<<20, created)
			path := pathOf(b)
			s.write(b, path)
			r := open(b, path, Options{NoNotify: poke, Poll: time.Hour})
			c := cursor(b, r, "orders", Start{Kind: End}, false)
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			body := payload("orders", 0, 512)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Write(s.add("orders", body)); err != nil {
					b.Fatal(err)
				}
				if poke {
					r.Poke()
				}
				if _, err := c.Next(b.Context(), 1000, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
