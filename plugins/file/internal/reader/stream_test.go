// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// created is the creation time of the first file of a test.
const created = 1_700_000_000_000

// stream is the content of a file in the making.
type stream struct {
	header format.Header
	b      []byte
	seqs   map[string]uint64
	starts []int64 // of the records, behind a beacon that stands before them
	now    int64
}

func newStream(interval uint32, at int64) *stream {
	h := format.Header{Name: "orders.ss", Created: at, Interval: interval}
	return &stream{header: h, b: h.Append(nil), seqs: map[string]uint64{}, now: at}
}

// add appends a record, cut by beacons, and returns the bytes that came.
func (s *stream) add(key string, payload []byte) []byte {
	from := len(s.b)
	s.seqs[key]++
	s.now++
	head := format.Head{Key: key, Sequence: s.seqs[key], Time: s.now}
	s.put(format.AppendRecord(nil, head, payload), format.Marker{Head: head, Checksum: 7})
	return s.b[from:]
}

// mark appends an end mark.
func (s *stream) mark() []byte {
	from := len(s.b)
	s.put(format.AppendEnd(nil, s.now))
	return s.b[from:]
}

func (s *stream) put(rec []byte, markers ...format.Marker) {
	interval := int(s.header.Interval)
	for started := false; len(rec) > 0; started = true {
		room := interval - len(s.b)%interval
		if room == interval {
			b := format.Beacon{Markers: markers[:min(len(markers), format.Slots(s.header.Interval))]}
			if started {
				b.Remaining = uint32(len(rec))
			}
			s.b = format.AppendBeacon(s.b, b)
			room -= b.Len()
		}
		if !started {
			s.starts = append(s.starts, int64(len(s.b)))
		}
		n := min(room, len(rec))
		s.b = append(s.b, rec[:n]...)
		rec = rec[n:]
	}
}

// write writes the stream to a file.
func (s *stream) write(t testing.TB, path string) {
	t.Helper()
	if err := os.WriteFile(path, s.b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// fill adds n records of one key with payloads that tell them apart.
func (s *stream) fill(key string, n, size int) {
	for range n {
		s.add(key, payload(key, s.seqs[key]+1, size))
	}
}

// payload is what a test's record carries.
func payload(key string, seq uint64, size int) []byte {
	p := fmt.Appendf(nil, "%s %d ", key, seq)
	for len(p) < size {
		p = append(p, byte('a'+len(p)%26))
	}
	return p
}

func pathOf(t testing.TB) string { return filepath.Join(t.TempDir(), "orders.ss") }

// open returns a reader that is closed with the test.
func open(t testing.TB, path string, o Options) *Reader {
	t.Helper()
	r, err := New(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if len(r.sources) > 0 || r.cache.used != 0 {
			t.Errorf("%d files are open, %d bytes are kept after Close", len(r.sources), r.cache.used)
		}
	})
	return r
}

// cursor returns a cursor or fails the test.
func cursor(t testing.TB, r *Reader, name string, s Start, replay bool) *Cursor {
	t.Helper()
	c, err := r.Cursor(Pattern(name), s, replay)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// got is what a cursor has told, its records by value.
type got struct {
	records  []Record
	problems []*Problem
	caughtUp bool
	ended    bool
}

func (g *got) add(b Batch) {
	g.records = append(g.records, b.Records...)
	g.problems = append(g.problems, b.Problems...)
	g.caughtUp = g.caughtUp || b.CaughtUp
	g.ended = g.ended || b.Ended
}

// patience bounds the wait for what must happen: on a busy machine it takes long.
const patience = 2 * time.Minute

// until reads on until enough says so.
func until(t testing.TB, c *Cursor, enough func(*got) bool) got {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var g got
	for !enough(&g) {
		b, err := c.Next(ctx, 100, 0)
		if err != nil {
			t.Fatalf("%v after %d records and the problems %v", err, len(g.records), g.problems)
		}
		g.add(b)
	}
	return g
}

// replayed reads to the end of a replay.
func replayed(t testing.TB, c *Cursor) got {
	t.Helper()
	return until(t, c, func(g *got) bool { return g.caughtUp })
}

// count reads n records.
func count(t testing.TB, c *Cursor, n int) got {
	t.Helper()
	return until(t, c, func(g *got) bool { return len(g.records) >= n })
}

// none fails if anything comes while the cursor is woken a few times.
func none(t testing.TB, c *Cursor) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*settle)
	defer cancel()
	if b, err := c.Next(ctx, 1, 0); err == nil {
		t.Fatalf("got %d records, problems %v, caught up %v, ended %v; want nothing", len(b.Records), b.Problems, b.CaughtUp, b.Ended)
	}
}

// sequences returns the records' sequences.
func (g got) sequences() []uint64 {
	var out []uint64
	for _, r := range g.records {
		out = append(out, r.Sequence)
	}
	return out
}

// numbers returns from to to.
func numbers(from, to uint64) []uint64 {
	var out []uint64
	for n := from; n <= to; n++ {
		out = append(out, n)
	}
	return out
}

// check compares records with what the test wrote.
func check(t testing.TB, g got, size int, want []uint64) {
	t.Helper()
	if s := g.sequences(); fmt.Sprint(s) != fmt.Sprint(want) {
		t.Errorf("got the sequences %v, want %v", s, want)
	}
	for _, r := range g.records {
		if p := payload(r.Key, r.Sequence, size); string(r.Payload) != string(p) {
			t.Errorf("%s %d: got %d bytes %.20q, want %d bytes %.20q", r.Key, r.Sequence, len(r.Payload), r.Payload, len(p), p)
		}
	}
}

// healthy fails on problems.
func healthy(t testing.TB, g got) {
	t.Helper()
	for _, p := range g.problems {
		t.Errorf("problem: %v", p)
	}
}
