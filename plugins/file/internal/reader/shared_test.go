// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// TestManyKeys has 1,000 cursors on as many keys of one file, each read to its
// end by a goroutine of its own while one stands still: the file is parsed once.
func TestManyKeys(t *testing.T) {
	const keys, each = 1000, 5
	s := newStream(1<<20, created)
	for range each {
		for k := range keys {
			key := fmt.Sprintf("k%d", k)
			s.add(key, payload(key, s.seqs[key]+1, 100))
		}
	}
	path := pathOf(t)
	s.write(t, path)
	r := open(t, path, Options{Chunk: 32 << 10})
	still := cursor(t, r, "*", Start{}, true)
	if _, err := still.Next(t.Context(), 1, 0); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for k := range keys {
		key := fmt.Sprintf("k%d", k)
		c := cursor(t, r, key, Start{}, true)
		wg.Go(func() {
			g := replayed(t, c)
			healthy(t, g)
			check(t, g, 100, numbers(1, each))
		})
	}
	wg.Wait()
	if want := int64(len(s.b)) - format.HeaderSize; r.parsed.Load() != want {
		t.Errorf("%d bytes were parsed of %d", r.parsed.Load(), want)
	}
	if n := len(replayed(t, still).records); n != keys*each-1 {
		t.Errorf("the one that stood still got %d records, want %d", n, keys*each-1)
	}
}

// TestManyTails has many live cursors at the end of one file: what comes is
// parsed once.
func TestManyTails(t *testing.T) {
	const keys = 200
	s := newStream(4096, created)
	path := pathOf(t)
	s.write(t, path)
	r := open(t, path, Options{})
	var wg sync.WaitGroup
	for k := range keys {
		c := cursor(t, r, fmt.Sprintf("k%d", k), Start{Kind: End}, false)
		wg.Go(func() {
			g := count(t, c, 3)
			healthy(t, g)
			check(t, g, 100, numbers(1, 3))
		})
	}
	for range 3 {
		from := len(s.b)
		for k := range keys {
			s.fill(fmt.Sprintf("k%d", k), 1, 100)
		}
		appendTo(t, path, s.b[from:])
	}
	wg.Wait()
	if want := int64(len(s.b)) - format.HeaderSize; r.parsed.Load() != want {
		t.Errorf("%d bytes were parsed of %d", r.parsed.Load(), want)
	}
}

// TestCacheKeepsWithinItsBytes reads a file far larger than the cache, by
// cursors that stand all over it.
func TestCacheKeepsWithinItsBytes(t *testing.T) {
	const limit = 64 << 10
	s := newStream(4096, created)
	s.fill("orders", 3000, 300)
	path := pathOf(t)
	s.write(t, path)
	r := open(t, path, Options{Chunk: 8 << 10, Cache: limit})
	var cursors []*Cursor
	for i := range 20 {
		cursors = append(cursors, cursor(t, r, "orders", Start{Kind: Sequence, Sequence: uint64(1 + i*150)}, true))
	}
	left := make([]uint64, len(cursors))
	for rest := len(cursors); rest > 0; {
		for i, c := range cursors {
			if c == nil {
				continue
			}
			b, err := c.Next(t.Context(), 7, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, rec := range b.Records {
				if left[i] == 0 {
					left[i] = rec.Sequence
				}
				if rec.Sequence != left[i] || string(rec.Payload) != string(payload("orders", rec.Sequence, 300)) {
					t.Fatalf("cursor %d: got %d, want %d", i, rec.Sequence, left[i])
				}
				left[i]++
			}
			if b.CaughtUp {
				cursors[i] = nil
				rest--
			}
			r.cache.mu.Lock()
			used, kept := r.cache.used, int64(0)
			for c := r.cache.newest; c != nil; c = c.older {
				kept += c.bytes()
			}
			r.cache.mu.Unlock()
			if used > limit || used != kept {
				t.Fatalf("the cache has %d bytes, by its count %d, at most %d are allowed", kept, used, limit)
			}
		}
	}
	for i, n := range left {
		if n != 3001 {
			t.Errorf("cursor %d ended before %d", i, n)
		}
	}
}

// TestWriterInPieces has cursors follow a writer that writes random pieces, and
// rotates.
func TestWriterInPieces(t *testing.T) {
	const n = 2000
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := newStream(1024, created)
			path := pathOf(t)
			s.write(t, path)
			o := way.o
			o.Chunk, o.Cache = 4<<10, 32<<10
			r := open(t, path, o)
			var wg sync.WaitGroup
			for i := range 8 {
				name := []string{"orders", "*"}[i%2]
				c := cursor(t, r, name, Start{}, false)
				rng := rand.New(rand.NewPCG(1, uint64(i)))
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					for next := uint64(1); next <= n; {
						b, err := c.Next(ctx, 1+rng.IntN(50), 0)
						if err != nil {
							t.Errorf("at %d: %v", next, err)
							return
						}
						healthy(t, got{problems: b.Problems})
						for _, rec := range b.Records {
							if rec.Sequence != next || string(rec.Payload) != string(payload("orders", next, int(next%700))) {
								t.Errorf("got %d, want %d", rec.Sequence, next)
								return
							}
							next++
						}
					}
				})
			}
			rng := rand.New(rand.NewPCG(2, 3))
			segment := uint64(1)
			written := len(s.b)
			f := appender(t, path)
			for i := uint64(1); i <= n; i++ {
				s.fill("orders", 1, int(i%700))
				for len(s.b)-written > 2000 || i%500 == 0 && len(s.b) > written {
					piece := min(1+rng.IntN(900), len(s.b)-written)
					if _, err := f.Write(s.b[written : written+piece]); err != nil {
						t.Fatal(err)
					}
					written += piece
				}
				if i%500 == 0 && i < n {
					f.Close()
					s = rotate(t, s, path, segment)
					segment++
					written = len(s.b)
					f = appender(t, path)
				}
			}
			f.Close()
			wg.Wait()
		})
	}
}

func appender(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
