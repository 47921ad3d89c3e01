// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// without returns the numbers from 1 to n but those from lost to upTo.
func without(n, lost, upTo uint64) []uint64 {
	return slices.DeleteFunc(numbers(1, n), func(i uint64) bool { return lost <= i && i <= upTo })
}

// TestDamagedPayload has one bit flipped in the payload of number 40 of 100.
func TestDamagedPayload(t *testing.T) {
	for _, interval := range []uint32{1024, 1 << 20} {
		s := newStream(interval, created)
		s.fill("orders", 100, 100)
		s.b[s.starts[39]+1+6+28+20] ^= 4
		path := pathOf(t)
		s.write(t, path)
		r := open(t, path, Options{Chunk: 2 << 10})
		for _, live := range []bool{false, true} {
			c := cursor(t, r, "orders", Start{}, !live)
			g := until(t, c, func(g *got) bool { return len(g.records) == 99 && (live || g.caughtUp) })
			check(t, g, 100, without(100, 40, 40))
			if len(g.problems) != 1 {
				t.Fatalf("problems %v, want one", g.problems)
			}
			p := g.problems[0]
			if p.Kind != Damage || p.Path != path || p.Offset != s.starts[39] || p.Sequence != 40 || p.Key != "orders" || p.Skipped < 138 {
				t.Errorf("problem %+v, want damage of number 40 at offset %d", p, s.starts[39])
			}
		}
		other := replayed(t, cursor(t, r, "others", Start{}, true))
		healthy(t, other)
	}
}

// TestDamagedLength has a length that is not true, in a file with beacons and
// in one without.
func TestDamagedLength(t *testing.T) {
	for _, c := range []struct {
		name     string
		interval uint32
		length   uint32
	}{
		{"longer, beacons", 4096, 120},
		{"beyond the file, beacons", 4096, 1 << 26},
		{"impossible, beacons", 4096, 1 << 31},
		{"shorter, beacons", 4096, 3},
		{"longer", 1 << 20, 120},
		{"beyond the file", 1 << 20, 1 << 26},
		{"impossible", 1 << 20, 1 << 31},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStream(c.interval, created)
			s.fill("orders", 100, 100)
			at := s.starts[39]
			binary.BigEndian.PutUint32(s.b[at+1+6+24:], c.length)
			// The first record that begins behind the next beacon.
			next := uint64(101)
			place := format.NextPlace(at+1, c.interval)
			for i, start := range s.starts {
				if start > place {
					next = uint64(i) + 1
					break
				}
			}
			path := pathOf(t)
			s.write(t, path)
			g := replayed(t, cursor(t, open(t, path, Options{Chunk: 2 << 10}), "orders", Start{}, true))
			check(t, g, 100, without(100, 40, next-1))
			if len(g.problems) != 1 || g.problems[0].Kind != Damage || g.problems[0].Offset != at || g.problems[0].Sequence != 40 {
				t.Fatalf("problems %v, want damage of number 40 at offset %d", g.problems, at)
			}
			want := int64(len(s.b)) - at
			if next <= 100 {
				want = s.starts[next-1] - at
			}
			if g.problems[0].Skipped != want {
				t.Errorf("%d bytes skipped, want %d", g.problems[0].Skipped, want)
			}
		})
	}
}

// TestDamageAtTheTail is damage behind which no beacon stands yet: a live
// cursor tells of it once and goes on behind the next beacon.
func TestDamageAtTheTail(t *testing.T) {
	s := newStream(4096, created)
	s.fill("orders", 10, 100)
	path := pathOf(t)
	s.write(t, path)
	r := open(t, path, Options{})
	c := cursor(t, r, "orders", Start{}, false)
	count(t, c, 10)
	at := len(s.b)
	s.fill("orders", 1, 100)
	s.b[at] = 0xff
	appendTo(t, path, s.b[at:])
	g := until(t, c, func(g *got) bool { return len(g.problems) > 0 })
	if p := g.problems[0]; p.Kind != Damage || p.Offset != int64(at) {
		t.Errorf("problem %v", p)
	}
	none(t, c)
	rest := len(s.b)
	for s.starts[len(s.starts)-1] < 4096 {
		s.fill("orders", 1, 100)
	}
	first := s.seqs["orders"]
	s.fill("orders", 5, 100)
	appendTo(t, path, s.b[rest:])
	g = count(t, c, 6)
	healthy(t, g)
	check(t, g, 100, numbers(first, first+5))
}

// TestTornTail cuts a file within its last record.
func TestTornTail(t *testing.T) {
	s := newStream(1024, created)
	s.fill("orders", 20, 300)
	from := int(s.starts[19])
	for _, cut := range []int{from + 1, from + 30, from + 200, len(s.b) - 1} {
		path := pathOf(t)
		if err := os.WriteFile(path, s.b[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		r := open(t, path, Options{})
		live := cursor(t, r, "orders", Start{}, false)
		healthy(t, count(t, live, 19))
		none(t, live)
		g := replayed(t, cursor(t, r, "orders", Start{}, true))
		check(t, g, 300, numbers(1, 19))
		if len(g.problems) != 1 || g.problems[0].Kind != TornTail || g.problems[0].Skipped != int64(cut)-g.problems[0].Offset {
			t.Errorf("cut at %d: problems %v, want a torn tail", cut, g.problems)
		}
		// The writer starts again, cuts the tail off and appends.
		if err := os.Truncate(path, s.starts[19]); err != nil {
			t.Fatal(err)
		}
		n := *s
		n.b, n.seqs = slices.Clone(s.b[:s.starts[19]]), map[string]uint64{"orders": 19}
		n.fill("orders", 5, 300)
		appendTo(t, path, n.b[s.starts[19]:])
		g = count(t, live, 5)
		healthy(t, g)
		check(t, g, 300, numbers(20, 24))
	}
}

func TestZeroTail(t *testing.T) {
	s := newStream(1<<20, created)
	s.fill("orders", 3, 100)
	path := pathOf(t)
	s.write(t, path)
	appendTo(t, path, make([]byte, 5000))
	g := replayed(t, cursor(t, open(t, path, Options{}), "orders", Start{}, true))
	check(t, g, 100, numbers(1, 3))
	if len(g.problems) != 1 || g.problems[0].Kind != TornTail {
		t.Errorf("problems %v, want a torn tail", g.problems)
	}
}

func TestBeaconAtTheEnd(t *testing.T) {
	s := newStream(1024, created)
	s.fill("orders", 3, 100)
	room := 1024 - len(s.b)
	s.fill("orders", 1, room-format.RecordOverhead-len("orders"))
	if len(s.b) != 1024 {
		t.Fatalf("%d bytes", len(s.b))
	}
	s.b = format.AppendBeacon(s.b, format.Beacon{})
	path := pathOf(t)
	s.write(t, path)
	r := open(t, path, Options{})
	g := replayed(t, cursor(t, r, "orders", Start{}, true))
	healthy(t, g)
	if len(g.records) != 4 {
		t.Errorf("%d records, want 4", len(g.records))
	}
	live := cursor(t, r, "orders", Start{Kind: End}, false)
	from := len(s.b)
	s.fill("orders", 1, 100)
	appendTo(t, path, s.b[from:])
	g = count(t, live, 1)
	healthy(t, g)
	check(t, g, 100, numbers(5, 5))
}

// TestDamageEverywhere has a damaged record behind each beacon, which is to cost
// no more than what is read up to the next one.
func TestDamageEverywhere(t *testing.T) {
	s := newStream(1024, created)
	s.fill("orders", 3000, 100)
	damaged, last := int64(0), int64(-1)
	for _, at := range s.starts {
		if place := at / 1024; place != last {
			s.b[at], last = 0xff, place
			damaged++
		}
	}
	path := pathOf(t)
	s.write(t, path)
	r := open(t, path, Options{})
	g := replayed(t, cursor(t, r, "orders", Start{}, true))
	if n := int64(len(g.problems)); len(g.records) > 0 || n < damaged-1 || n > damaged {
		t.Errorf("got %d records and %d problems, want none and %d", len(g.records), n, damaged)
	}
	if read := r.loaded.Load(); read > int64(8*len(s.b)) {
		t.Errorf("read %d bytes of a file of %d", read, len(s.b))
	}
	s = newStream(1024, created+1)
	s.fill("orders", 20000, 100)
	s.b[s.starts[1]] = 0xff
	s.write(t, path)
	chunks := r.loaded.Load()
	g = replayed(t, cursor(t, r, "orders", Start{}, true))
	if read := r.loaded.Load() - chunks; len(g.problems) != 1 || read > int64(2*len(s.b)) {
		t.Errorf("one damaged record: %d problems, %d bytes read of %d", len(g.problems), read, len(s.b))
	}
}
