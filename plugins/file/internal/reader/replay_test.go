// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"fmt"
	"slices"
	"testing"
)

func TestReplay(t *testing.T) {
	for _, c := range []struct {
		name     string
		interval uint32
		chunk    int
		size     int
		n        uint64
	}{
		{"one chunk", 1 << 20, 0, 20, 100},
		{"many chunks", 1 << 20, 2 << 10, 300, 1000},
		{"beacons in many records", 1024, 0, 500, 500},
		{"beacons and chunks", 1024, 1 << 10, 500, 500},
		{"records over the chunk", 4096, 1 << 10, 10_000, 50},
		{"records over the interval", 1024, 4 << 10, 5000, 50},
		{"empty payloads", 1024, 1 << 10, 0, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStream(c.interval, created)
			s.fill("orders", int(c.n), c.size)
			path := pathOf(t)
			s.write(t, path)
			r := open(t, path, Options{Chunk: c.chunk})
			cur := cursor(t, r, "orders", Start{}, true)
			g := replayed(t, cur)
			healthy(t, g)
			check(t, g, c.size, numbers(1, c.n))
			for i, rec := range g.records {
				if want := (Place{created, s.starts[i]}); rec.At != want {
					t.Fatalf("record %d is at %v, want %v", i, rec.At, want)
				}
			}
			if want := (Place{created, int64(len(s.b))}); cur.Place() != want {
				t.Errorf("stands at %v, want %v", cur.Place(), want)
			}
			none(t, cur)
		})
	}
}

func TestReplaySmallSteps(t *testing.T) {
	s := newStream(1024, created)
	for i := range 300 {
		key := fmt.Sprintf("k%d", i%17)
		s.add(key, payload(key, s.seqs[key]+1, 60))
	}
	path := pathOf(t)
	s.write(t, path)
	for _, name := range []string{"k3", "k1*", "*", "none"} {
		t.Run(name, func(t *testing.T) {
			r := open(t, path, Options{Chunk: 2 << 10})
			all := replayed(t, cursor(t, r, name, Start{}, true))
			cur := cursor(t, r, name, Start{}, true)
			var g got
			for !g.caughtUp {
				b, err := cur.Next(t.Context(), 1, 0)
				if err != nil {
					t.Fatal(err)
				}
				if len(b.Records) > 1 {
					t.Fatalf("%d records at once", len(b.Records))
				}
				g.add(b)
			}
			healthy(t, g)
			same := func(a, b Record) bool { return a.Key == b.Key && a.Sequence == b.Sequence && a.At == b.At }
			if !slices.EqualFunc(g.records, all.records, same) {
				t.Errorf("one by one %d records, at once %d, or others", len(g.records), len(all.records))
			}
			want := 0
			for key, n := range s.seqs {
				if Pattern(name).Has(key) {
					want += int(n)
				}
			}
			if len(g.records) != want {
				t.Errorf("got %d records, want %d", len(g.records), want)
			}
		})
	}
}

func TestReplayBytes(t *testing.T) {
	s := newStream(1<<20, created)
	s.fill("orders", 50, 100)
	path := pathOf(t)
	s.write(t, path)
	cur := cursor(t, open(t, path, Options{}), "orders", Start{}, true)
	b, err := cur.Next(t.Context(), 0, 250)
	if err != nil || len(b.Records) != 3 {
		t.Fatalf("got %d records, %v; want 3: the one that goes over is the last", len(b.Records), err)
	}
	check(t, got{records: replayed(t, cur).records}, 100, numbers(4, 50))
}

// TestCaughtUpWithTheLastRecords has a replay say that it has caught up
// together with its last records: what is written because of them is not read.
func TestCaughtUpWithTheLastRecords(t *testing.T) {
	for _, marked := range []bool{false, true} {
		s := newStream(1<<20, created)
		s.fill("orders", 10, 100)
		path := pathOf(t)
		s.write(t, path)
		if marked {
			appendTo(t, path, s.mark())
		}
		c := cursor(t, open(t, path, Options{}), "orders", Start{}, true)
		for _, n := range []int{6, 4} {
			b, err := c.Next(t.Context(), 6, 0)
			if err != nil || len(b.Records) != n || b.CaughtUp != (n == 4) {
				t.Errorf("got %d records, caught up %v, %v; want %d, the last ones with the end", len(b.Records), b.CaughtUp, err, n)
			}
		}
		s.more(t, path, 1)
		none(t, c)
	}
}
