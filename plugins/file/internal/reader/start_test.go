// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// positions writes 20 records of orders, each behind one of another key, into
// the number of segments given.
func positions(t *testing.T, interval uint32, segments int) (string, *stream, []int64) {
	path := pathOf(t)
	s := newStream(interval, created)
	var times []int64
	for i := range 20 {
		if i > 0 && i%(20/segments) == 0 && i/(20/segments) < segments {
			s.write(t, path)
			if err := os.Rename(path, segment.Rotated(path, uint64(i/(20/segments)))); err != nil {
				t.Fatal(err)
			}
			n := newStream(interval, s.now+1)
			n.seqs = s.seqs
			s = n
		}
		s.fill("others", 1, 90)
		s.fill("orders", 1, 100)
		times = append(times, s.now)
	}
	s.write(t, path)
	return path, s, times
}

func TestStarts(t *testing.T) {
	for _, segments := range []int{1, 4} {
		for _, interval := range []uint32{1024, 1 << 20} {
			t.Run(fmt.Sprintf("%d segments, beacons every %d", segments, interval), func(t *testing.T) {
				path, s, times := positions(t, interval, segments)
				r := open(t, path, Options{})
				for _, c := range []struct {
					name  string
					start Start
					want  []uint64
				}{
					{"beginning", Start{}, numbers(1, 20)},
					{"end", Start{Kind: End}, nil},
					{"sequence 0", Start{Kind: Sequence}, numbers(1, 20)},
					{"sequence 1", Start{Kind: Sequence, Sequence: 1}, numbers(1, 20)},
					{"sequence 7", Start{Kind: Sequence, Sequence: 7}, numbers(7, 20)},
					{"sequence 16", Start{Kind: Sequence, Sequence: 16}, numbers(16, 20)},
					{"sequence 20", Start{Kind: Sequence, Sequence: 20}, numbers(20, 20)},
					{"sequence 21", Start{Kind: Sequence, Sequence: 21}, nil},
					{"time of number 7", Start{Kind: Time, Time: times[6]}, numbers(8, 20)},
					{"time before number 7", Start{Kind: Time, Time: times[6] - 1}, numbers(7, 20)},
					{"time of number 15", Start{Kind: Time, Time: times[14]}, numbers(16, 20)},
					{"time before the file", Start{Kind: Time, Time: 5}, numbers(1, 20)},
					{"time of the last", Start{Kind: Time, Time: times[19]}, nil},
				} {
					t.Run(c.name, func(t *testing.T) {
						g := replayed(t, cursor(t, r, "orders", c.start, true))
						healthy(t, g)
						check(t, g, 100, c.want)
						for _, rec := range g.records {
							again := replayed(t, cursor(t, r, "orders", Start{Kind: At, At: rec.At}, true))
							check(t, again, 100, numbers(rec.Sequence, 20))
						}
					})
				}
				var live []*Cursor
				for _, start := range []Start{{Kind: End}, {Kind: Sequence, Sequence: 21}, {Kind: Time, Time: times[19]}} {
					live = append(live, cursor(t, r, "orders", start, false))
				}
				s.more(t, path, 3)
				for _, c := range live {
					check(t, count(t, c, 3), 100, numbers(21, 23))
				}
				for _, key := range []string{"orders", "nothing"} {
					_, err := r.Cursor(Pattern(key), Start{Kind: Sequence, Sequence: 99}, false)
					p, ok := errors.AsType[*PositionError](err)
					if want := s.seqs[key]; !ok || p.Last != want || p.Sequence != 99 || p.Key != key || p.Path != path {
						t.Errorf("%s: sequence 99: got %v, want a position beyond the last one, %d", key, err, want)
					}
				}
				if _, err := r.Cursor(Pattern("ord*"), Start{Kind: Sequence, Sequence: 2}, false); !errors.As(err, new(*PositionError)) {
					t.Errorf("sequence of a pattern: %v", err)
				}
			})
		}
	}
}

func TestStartAtMark(t *testing.T) {
	s := newStream(1<<20, created)
	s.fill("orders", 5, 100)
	at := int64(len(s.b))
	s.mark()
	path := pathOf(t)
	s.write(t, path)
	r := open(t, path, Options{})
	for _, start := range []Start{{Kind: End}, {Kind: Sequence, Sequence: 6}, {Kind: Time, Time: s.now}} {
		none(t, cursor(t, r, "orders", start, false))
	}
	c := cursor(t, r, "orders", Start{Kind: Sequence, Sequence: 5}, false)
	until(t, c, func(g *got) bool { return g.ended })

	// One that stands there later ends what began there.
	if err := os.Truncate(path, at); err != nil {
		t.Fatal(err)
	}
	c = cursor(t, r, "orders", Start{Kind: Sequence, Sequence: 6}, false)
	appendTo(t, path, s.b[at:])
	until(t, c, func(g *got) bool { return g.ended })
}

func TestStartAtUnknownPlace(t *testing.T) {
	s := newStream(1024, created)
	s.fill("orders", 20, 100)
	path := pathOf(t)
	s.write(t, path)
	r := open(t, path, Options{})
	_, err := r.Cursor(Pattern("orders"), Start{Kind: At, At: Place{created, int64(len(s.b)) + 1}}, false)
	if !errors.As(err, new(*PositionError)) {
		t.Errorf("beyond the end: %v", err)
	}
	_, err = r.Cursor(Pattern("orders"), Start{Kind: At, At: Place{created - 1, 128}}, false)
	if p, ok := errors.AsType[*Problem](err); !ok || p.Kind != Gone {
		t.Errorf("in an unknown file: %v", err)
	}
	for _, off := range []int64{0, 128} {
		check(t, replayed(t, cursor(t, r, "orders", Start{Kind: At, At: Place{created, off}}, true)), 100, numbers(1, 20))
	}
	// No boundary: the first record behind it.
	g := replayed(t, cursor(t, r, "orders", Start{Kind: At, At: Place{created, s.starts[9] + 30}}, true))
	healthy(t, g)
	check(t, g, 100, numbers(11, 20))
}

func TestStartBehindDamage(t *testing.T) {
	s := newStream(4096, created)
	s.fill("orders", 10, 100)
	s.b[s.starts[7]] = 0xff
	path := pathOf(t)
	s.write(t, path)
	live := cursor(t, open(t, path, Options{}), "orders", Start{Kind: End}, false)
	from := len(s.b)
	for s.starts[len(s.starts)-1] < 4096 {
		s.fill("orders", 1, 100)
	}
	appendTo(t, path, s.b[from:])
	g := count(t, live, 1)
	check(t, g, 100, numbers(s.seqs["orders"], s.seqs["orders"]))
}

func TestSeek(t *testing.T) {
	path, s, times := positions(t, 1024, 4)
	r := open(t, path, Options{})
	c := cursor(t, r, "orders", Start{}, true)
	check(t, replayed(t, c), 100, numbers(1, 20))
	at := c.Place()
	for _, step := range []struct {
		start Start
		want  []uint64
	}{
		{Start{}, numbers(1, 20)},
		{Start{Kind: Sequence, Sequence: 19}, numbers(19, 20)},
		{Start{Kind: Time, Time: times[2]}, numbers(4, 20)},
		{Start{Kind: End}, nil},
		{Start{Kind: At, At: at}, nil},
	} {
		if err := c.Seek(t.Context(), step.start); err != nil {
			t.Fatal(err)
		}
		check(t, replayed(t, c), 100, step.want)
	}
	if err := c.Seek(t.Context(), Start{Kind: Sequence, Sequence: 22}); !errors.As(err, new(*PositionError)) {
		t.Errorf("beyond the end: %v", err)
	}
	none(t, c) // where it was

	live := cursor(t, r, "orders", Start{Kind: End}, false)
	if err := live.Seek(t.Context(), Start{Kind: Sequence, Sequence: 20}); err != nil {
		t.Fatal(err)
	}
	check(t, count(t, live, 1), 100, numbers(20, 20))
	s.more(t, path, 1)
	check(t, count(t, live, 1), 100, numbers(21, 21))
}

func TestReadAgain(t *testing.T) {
	s := newStream(1024, created)
	s.fill("orders", 50, 900)
	s.fill("orders", 1, 50_000)
	path := pathOf(t)
	s.write(t, path)
	r := open(t, path, Options{Chunk: 2 << 10, Cache: 4 << 10})
	c := cursor(t, r, "orders", Start{}, true)
	g := replayed(t, c)
	at := c.Place()
	for _, rec := range g.records {
		again, err := c.Read(t.Context(), rec.At)
		if err != nil {
			t.Fatal(err)
		}
		if again.Key != rec.Key || again.Sequence != rec.Sequence || again.Time != rec.Time || again.At != rec.At || string(again.Payload) != string(rec.Payload) {
			t.Fatalf("number %d: got %d at %v, want it at %v", rec.Sequence, again.Sequence, again.At, rec.At)
		}
	}
	if c.Place() != at {
		t.Error("reading again moves the cursor")
	}
	_, err := c.Read(t.Context(), Place{created, int64(len(s.b))})
	if !errors.As(err, new(*PositionError)) {
		t.Errorf("beyond the end: %v", err)
	}
	_, err = c.Read(t.Context(), Place{created + 7, 128})
	if p, ok := errors.AsType[*Problem](err); !ok || p.Kind != Gone {
		t.Errorf("in an unknown file: %v", err)
	}
	s.b[s.starts[50]+1000] ^= 1
	s.write(t, path)
	_, err = open(t, path, Options{}).single(t, g.records[50].At)
	if p, ok := errors.AsType[*Problem](err); !ok || p.Kind != Damage || p.Sequence != 51 {
		t.Errorf("damaged: %v", err)
	}
}

// single reads one record through a cursor that has read nothing.
func (r *Reader) single(t *testing.T, at Place) (Record, error) {
	return cursor(t, r, "none", Start{Kind: End}, false).Read(t.Context(), at)
}

func TestClose(t *testing.T) {
	s := newStream(1024, created)
	path := pathOf(t)
	s.write(t, path)
	r, err := New(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	var cursors []*Cursor
	for range 3 {
		c := cursor(t, r, "orders", Start{}, false)
		cursors = append(cursors, c)
		go func() {
			_, err := c.Next(context.Background(), 1, 0)
			errs <- err
		}()
	}
	waiting(t, r)
	cursors[0].Close()
	if err := <-errs; !errors.Is(err, ErrClosed) {
		t.Errorf("closed cursor: %v", err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Errorf("closed reader: %v", err)
		}
	}
	if _, err := cursors[1].Next(t.Context(), 1, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := r.Cursor(Pattern("orders"), Start{}, false); !errors.Is(err, ErrClosed) {
		t.Errorf("cursor of a closed reader: %v", err)
	}
	if len(r.sources) > 0 || r.cache.used != 0 {
		t.Errorf("%d files are open, %d bytes are kept", len(r.sources), r.cache.used)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	path := pathOf(t)
	if _, err := New(path, Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, make([]byte, 200), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(path, Options{}); !errors.As(err, new(*segment.KindError)) {
		t.Errorf("another kind of file: %v", err)
	}
	h := format.Header{Name: "orders.ss", Created: created, Interval: 1024}
	if err := os.WriteFile(path, h.Append(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	g := replayed(t, cursor(t, open(t, path, Options{}), "*", Start{}, true))
	healthy(t, g)
}
