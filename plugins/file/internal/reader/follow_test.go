// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"os"
	"testing"
	"time"

	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// rotate renames the active file to its number and puts another one there,
// whose sequences go on.
func rotate(t testing.TB, s *stream, path string, number uint64) *stream {
	t.Helper()
	n := newStream(s.header.Interval, s.header.Created+1000)
	n.seqs = s.seqs
	tmp := path + ".next"
	n.write(t, tmp)
	if err := os.Rename(path, segment.Rotated(path, number)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, path); err != nil {
		t.Fatal(err)
	}
	return n
}

// more appends records to a stream and its file.
func (s *stream) more(t testing.TB, path string, n int) {
	t.Helper()
	from := len(s.b)
	s.fill("orders", n, 100)
	appendTo(t, path, s.b[from:])
}

func TestRotation(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := newStream(1024, created)
			path := pathOf(t)
			s.write(t, path)
			r := open(t, path, way.o)
			live := cursor(t, r, "orders", Start{Kind: End}, false)
			slow := cursor(t, r, "orders", Start{}, false)
			for number := range uint64(3) {
				s.more(t, path, 10)
				if number > 0 {
					// Told of by a rotation alone.
					waiting := count(t, live, 10)
					healthy(t, waiting)
					check(t, waiting, 100, numbers(number*10-9, number*10))
				}
				s = rotate(t, s, path, number+1)
			}
			s.more(t, path, 5)
			g := count(t, live, 15)
			healthy(t, g)
			check(t, g, 100, numbers(21, 35))
			for _, c := range []*Cursor{slow, cursor(t, open(t, path, Options{}), "orders", Start{}, false)} {
				g = count(t, c, 35)
				healthy(t, g)
				check(t, g, 100, numbers(1, 35))
			}
			g = replayed(t, cursor(t, r, "orders", Start{}, true))
			healthy(t, g)
			check(t, g, 100, numbers(1, 35))
			if at := live.Place(); at.Created != s.header.Created || at.Offset != int64(len(s.b)) {
				t.Errorf("stands at %v", at)
			}
		})
	}
}

// TestRotationRemoves has segments removed before they were read.
func TestRotationRemoves(t *testing.T) {
	s := newStream(1024, created)
	path := pathOf(t)
	s.write(t, path)
	r := open(t, path, Options{})
	live := cursor(t, r, "orders", Start{}, false)
	s.more(t, path, 10)
	count(t, live, 5)
	for number := range uint64(4) {
		s = rotate(t, s, path, number+1)
		s.more(t, path, 10)
	}
	for number := range uint64(3) {
		if err := os.Remove(segment.Rotated(path, number+1)); err != nil {
			t.Fatal(err)
		}
	}
	g := count(t, live, 20)
	check(t, g, 100, numbers(31, 50))
	if len(g.problems) != 1 || g.problems[0].Kind != Gone || g.problems[0].Path != segment.Rotated(path, 2) {
		t.Errorf("problems %v, want that 2 and 3 are gone", g.problems)
	}
}

// TestFileWrittenAnew truncates a file and writes another one in its place.
func TestFileWrittenAnew(t *testing.T) {
	for _, way := range ways {
		for _, c := range []struct {
			name     string
			old, now int
			at       int64 // creation of the new one
		}{
			{"shorter", 10, 5, created + 5},
			{"longer", 10, 30, created + 5},
			{"longer, the same header", 10, 30, created},
		} {
			t.Run(way.name+", "+c.name, func(t *testing.T) {
				s := newStream(1024, created)
				s.fill("orders", c.old, 100)
				path := pathOf(t)
				s.write(t, path)
				r := open(t, path, way.o)
				live := cursor(t, r, "orders", Start{}, false)
				count(t, live, c.old)
				n := newStream(1024, c.at)
				if c.at == created {
					n.now += 17
				}
				n.fill("orders", c.now, 100)
				n.write(t, path) // in place
				g := count(t, live, c.now)
				check(t, g, 100, numbers(1, uint64(c.now)))
				if len(g.problems) != 1 || g.problems[0].Kind != Replaced && g.problems[0].Kind != Shrunk {
					t.Errorf("problems %v, want one: shrunk or replaced", g.problems)
				}
			})
		}
	}
}

// TestTruncatedThenWritten looks at the file between its truncation and its
// new content.
func TestTruncatedThenWritten(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := newStream(1024, created)
			s.fill("orders", 10, 100)
			path := pathOf(t)
			s.write(t, path)
			live := cursor(t, open(t, path, way.o), "orders", Start{}, false)
			count(t, live, 10)
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
			g := until(t, live, func(g *got) bool { return len(g.problems) > 0 })
			if len(g.records) > 0 || g.problems[0].Kind != Shrunk {
				t.Fatalf("got %d records, %v", len(g.records), g.problems)
			}
			n := newStream(1024, created)
			n.fill("orders", 5, 100)
			appendTo(t, path, n.b[:60])
			none(t, live)
			appendTo(t, path, n.b[60:])
			g = count(t, live, 5)
			healthy(t, g)
			check(t, g, 100, numbers(1, 5))
		})
	}
}

// TestFileReplaced renames the file away and creates another one.
func TestFileReplaced(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := newStream(1024, created)
			s.fill("orders", 10, 100)
			path := pathOf(t)
			s.write(t, path)
			live := cursor(t, open(t, path, way.o), "orders", Start{}, false)
			count(t, live, 10)
			old := path + ".old"
			if err := os.Rename(path, old); err != nil {
				t.Fatal(err)
			}
			s.more(t, old, 2) // the last words of its writer
			n := newStream(1024, created+9)
			n.fill("orders", 5, 100)
			n.write(t, path)
			g := count(t, live, 7)
			check(t, g, 100, append(numbers(11, 12), numbers(1, 5)...))
			if len(g.problems) != 1 || g.problems[0].Kind != Replaced {
				t.Errorf("problems %v, want one: replaced", g.problems)
			}
		})
	}
}

// TestFileRemoved removes the file and creates another one much later.
func TestFileRemoved(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := newStream(1024, created)
			s.fill("orders", 10, 100)
			path := pathOf(t)
			s.write(t, path)
			live := cursor(t, open(t, path, way.o), "orders", Start{}, false)
			count(t, live, 10)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			g := until(t, live, func(g *got) bool { return len(g.problems) > 0 })
			if g.problems[0].Kind != Gone {
				t.Errorf("problem %v, want gone", g.problems[0])
			}
			none(t, live)
			n := newStream(1024, created+9)
			n.fill("orders", 5, 100)
			n.write(t, path)
			g = count(t, live, 5)
			check(t, g, 100, numbers(1, 5))
			if len(g.problems) != 1 || g.problems[0].Kind != Replaced {
				t.Errorf("problems %v, want one: replaced", g.problems)
			}
		})
	}
}

// TestReplayAfterRotation begins a replay before a rotation can have been heard
// of.
func TestReplayAfterRotation(t *testing.T) {
	s := newStream(1024, created)
	path := pathOf(t)
	s.write(t, path)
	r := open(t, path, Options{NoNotify: true, Poll: time.Hour})
	live := cursor(t, r, "orders", Start{}, false)
	replay := cursor(t, r, "orders", Start{}, true)
	s.more(t, path, 10)
	count(t, live, 10)
	none(t, live)
	s = rotate(t, s, path, 1)
	s.more(t, path, 10)
	check(t, replayed(t, replay), 100, numbers(1, 20))
	check(t, replayed(t, cursor(t, r, "orders", Start{}, true)), 100, numbers(1, 20))
}

// TestFileCutShort takes whole records off the end of a file that stays the
// same before them.
func TestFileCutShort(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := newStream(1024, created)
			s.fill("orders", 30, 100)
			path := pathOf(t)
			s.write(t, path)
			o := way.o
			o.Chunk = 1 << 10
			live := cursor(t, open(t, path, o), "orders", Start{}, false)
			count(t, live, 30)
			if err := os.Truncate(path, s.starts[20]); err != nil {
				t.Fatal(err)
			}
			g := until(t, live, func(g *got) bool { return len(g.problems) > 0 })
			if len(g.records) > 0 || g.problems[0].Kind != Shrunk {
				t.Fatalf("got %d records, %v", len(g.records), g.problems)
			}
			s.b = s.b[:s.starts[20]]
			s.more(t, path, 3)
			g = count(t, live, 3)
			healthy(t, g)
			check(t, g, 100, numbers(31, 33))
		})
	}
}
