// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"os"
	"testing"
	"time"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// appendTo appends to a file.
func appendTo(t testing.TB, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
}

// waiting returns when somebody waits for the reader's next wake.
func waiting(t testing.TB, r *Reader) {
	t.Helper()
	eventually(t, "nobody waits", func() bool {
		r.watch.mu.Lock()
		defer r.watch.mu.Unlock()
		return r.watch.changed != nil
	})
}

// eventually polls a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
		time.Sleep(time.Millisecond)
	}
}

// ways are how a reader hears of changes.
var ways = []struct {
	name string
	o    Options
}{
	{"notifications", Options{Poll: time.Hour}},
	{"polling", Options{NoNotify: true}},
}

func TestLive(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := newStream(1024, created)
			s.fill("orders", 10, 100)
			path := pathOf(t)
			s.write(t, path)
			r := open(t, path, way.o)
			all := cursor(t, r, "orders", Start{}, false)
			tail := cursor(t, r, "orders", Start{Kind: End}, false)
			check(t, count(t, all, 10), 100, numbers(1, 10))
			for i := range uint64(20) {
				done := make(chan struct{})
				go func() {
					defer close(done)
					waiting(t, r)
					appendTo(t, path, s.add("orders", payload("orders", 11+i, 100)))
				}()
				g := count(t, tail, 1)
				<-done
				healthy(t, g)
				check(t, g, 100, numbers(11+i, 11+i))
			}
			g := count(t, all, 20)
			healthy(t, g)
			check(t, g, 100, numbers(11, 30))
		})
	}
}

// TestRecordInTheMaking is a record of 300 KiB that comes in seven pieces, one
// of which ends at a beacon's place and one within a beacon.
func TestRecordInTheMaking(t *testing.T) {
	for _, way := range ways {
		for _, replaced := range []bool{false, true} {
			t.Run(way.name, func(t *testing.T) {
				s := newStream(64<<10, created)
				s.fill("orders", 3, 100)
				path := pathOf(t)
				s.write(t, path)
				r := open(t, path, way.o)
				cur := cursor(t, r, "orders", Start{Kind: End}, false)
				from := int64(len(s.b))
				s.add("orders", payload("orders", 4, 300<<10))
				cuts := []int64{from + 1, from + 20, from + 30_000, 64 << 10, 64<<10 + 4, 200_000, int64(len(s.b)) - 1, int64(len(s.b))}
				done := make(chan struct{})
				go func() {
					defer close(done)
					at := from
					for _, cut := range cuts {
						waiting(t, r)
						appendTo(t, path, s.b[at:cut])
						at = cut
						if replaced && cut == 200_000 {
							// A writer that starts again cuts the tail off and writes another record.
							if err := os.Truncate(path, from); err != nil {
								t.Error(err)
							}
							at = from
							s.b = s.b[:from]
							s.seqs["orders"] = 3
							s.add("orders", payload("orders", 4, 290<<10))
							cuts[len(cuts)-1], cuts[len(cuts)-2] = int64(len(s.b)), int64(len(s.b))-1
						}
					}
				}()
				g := count(t, cur, 1)
				<-done
				healthy(t, g)
				if replaced {
					check(t, g, 290<<10, numbers(4, 4))
				} else {
					check(t, g, 300<<10, numbers(4, 4))
				}
			})
		}
	}
}

func TestEndMark(t *testing.T) {
	s := newStream(1<<20, created)
	s.fill("orders", 5, 100)
	at := int64(len(s.b))
	mark := s.mark()
	path := pathOf(t)
	s.write(t, path)
	r := open(t, path, Options{})
	live := cursor(t, r, "orders", Start{}, false)
	tail := cursor(t, r, "orders", Start{Kind: End}, false)
	replay := cursor(t, r, "orders", Start{}, true)
	g := until(t, live, func(g *got) bool { return g.ended })
	check(t, g, 100, numbers(1, 5))
	none(t, live)
	none(t, tail)
	if g := replayed(t, replay); g.ended || len(g.records) != 5 {
		t.Errorf("replay: %d records, ended %v", len(g.records), g.ended)
	}

	t.Run("written over", func(t *testing.T) {
		// The next record is shorter than the mark, whose end stays behind it.
		s.b = s.b[:at]
		rec := s.add("orders", nil)
		if len(rec) >= len(mark) {
			t.Fatalf("a record of %d bytes", len(rec))
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt(rec, at); err != nil {
			t.Fatal(err)
		}
		r.Poke()
		for _, c := range []*Cursor{live, tail} {
			g := count(t, c, 1)
			healthy(t, g)
			none(t, c)
		}
		if _, err := f.WriteAt(s.add("orders", payload("orders", 7, 100)), at+int64(len(rec))); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*Cursor{live, tail} {
			g := count(t, c, 1)
			healthy(t, g)
			check(t, g, 100, numbers(7, 7))
		}
	})
	t.Run("followed", func(t *testing.T) {
		b := append(s.mark(), s.add("orders", payload("orders", 8, 100))...)
		appendTo(t, path, b)
		for _, c := range []*Cursor{live, tail, cursor(t, r, "orders", Start{}, true)} {
			g := until(t, c, func(g *got) bool { return len(g.records) > 0 && g.records[len(g.records)-1].Sequence == 8 })
			healthy(t, g)
			if g.ended {
				t.Error("ended by a mark that records follow")
			}
		}
	})
}

// TestLargeRecordIsNotReadAgain has a record come in many pieces: it is read
// once when it is whole, beside looks at its beginning.
func TestLargeRecordIsNotReadAgain(t *testing.T) {
	s := newStream(1<<20, created)
	path := pathOf(t)
	s.write(t, path)
	r := open(t, path, Options{Poll: time.Hour})
	c := cursor(t, r, "orders", Start{}, false)
	s.fill("orders", 1, 8<<20)
	done := make(chan got)
	go func() { done <- count(t, c, 1) }()
	const piece = 100_000
	for at := format.HeaderSize; at < len(s.b); at += piece {
		waiting(t, r)
		appendTo(t, path, s.b[at:min(len(s.b), at+piece)])
	}
	g := <-done
	healthy(t, g)
	check(t, g, 8<<20, numbers(1, 1))
	if n := r.loaded.Load(); n > 2*int64(len(s.b)) {
		t.Errorf("%d bytes were read for a record of %d", n, len(s.b))
	}
}

// TestFalseLengthAtTheTail has a length that is not true: a live cursor waits
// no longer than for the next beacon.
func TestFalseLengthAtTheTail(t *testing.T) {
	s := newStream(1<<20, created)
	s.fill("orders", 10, 100)
	path := pathOf(t)
	s.write(t, path)
	r := open(t, path, Options{})
	c := cursor(t, r, "orders", Start{}, false)
	count(t, c, 10)
	from := len(s.b)
	s.fill("orders", 1, 100)
	s.b[from+1+6+24] = 3 // 48 MiB
	for len(s.b) < 1<<20 {
		s.fill("orders", 50, 1000)
		appendTo(t, path, s.b[from:])
		from = len(s.b)
	}
	first := s.seqs["orders"] + 1
	s.fill("orders", 200, 1000)
	appendTo(t, path, s.b[from:])
	g := until(t, c, func(g *got) bool {
		return len(g.records) > 0 && g.records[len(g.records)-1].Sequence == s.seqs["orders"]
	})
	if len(g.problems) != 1 || g.problems[0].Kind != Damage || g.problems[0].Sequence != 11 {
		t.Errorf("problems %v, want damage of number 11", g.problems)
	}
	if g.records[0].Sequence > first {
		t.Errorf("goes on at %d, want %d or earlier", g.records[0].Sequence, first)
	}
}
