// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// rotations writes three files of ten records each, of which two are rotated.
func rotations(t *testing.T) string {
	t.Helper()
	s, path := newStream(1024, created), pathOf(t)
	s.write(t, path)
	s.more(t, path, 10)
	for number := range uint64(2) {
		s = rotate(t, s, path, number+1)
		s.more(t, path, 10)
	}
	return path
}

// A rotated file that cannot be read is told of and passed, wherever it stands
// and wherever reading begins; a replay does not end before it.
func TestRotatedFilesThatCannotBeRead(t *testing.T) {
	kinds := []struct{ name, bytes string }{
		{"empty", ""}, {"cut header", "Ss\x01"}, {"zeros", strings.Repeat("\x00", 3000)}, {"another kind", "\x1f\x8b" + strings.Repeat("x", 300)},
	}
	first, second := Start{}, Start{Kind: Sequence, Sequence: 15}
	early := Start{Kind: At, At: Place{Created: created, Offset: 128}}
	tests := []struct {
		name string
		bad  uint64
		from Start
		want []uint64
		told bool
	}{
		{"the first", 1, first, numbers(11, 30), true},
		{"the second", 2, first, slices.Concat(numbers(1, 10), numbers(21, 30)), true},
		{"the second, from a place", 2, early, slices.Concat(numbers(1, 10), numbers(21, 30)), true},
		{"a sequence behind it", 1, second, numbers(15, 30), false},
		{"a sequence before it", 2, Start{Kind: Sequence, Sequence: 5}, slices.Concat(numbers(5, 10), numbers(21, 30)), true},
		{"a sequence within it", 2, second, numbers(21, 30), true},
		{"a time before it", 2, Start{Kind: Time, Time: created + 5}, slices.Concat(numbers(6, 10), numbers(21, 30)), true},
	}
	for _, kind := range kinds {
		for _, tt := range tests {
			t.Run(kind.name+"/"+tt.name, func(t *testing.T) {
				path := rotations(t)
				bad := segment.Rotated(path, tt.bad)
				if err := os.WriteFile(bad, []byte(kind.bytes), 0o600); err != nil {
					t.Fatal(err)
				}
				r := open(t, path, Options{})
				live := count(t, cursor(t, r, "orders", tt.from, false), len(tt.want))
				for _, g := range []got{replayed(t, cursor(t, r, "orders", tt.from, true)), live} {
					check(t, g, 100, tt.want)
					if !tt.told {
						healthy(t, g)
					} else if len(g.problems) != 1 || g.problems[0].Kind != Damage || g.problems[0].Path != bad {
						t.Errorf("problems %v, want one about %s", g.problems, bad)
					}
				}
			})
		}
	}
}

// Files get other numbers when those before them are removed. A cursor goes on
// in a file that another one has open since before.
func TestAllRotatedFilesRemoved(t *testing.T) {
	path := rotations(t)
	r := open(t, path, Options{})
	slow := cursor(t, r, "orders", Start{}, false)
	cursor(t, r, "orders", Start{Kind: End}, false)
	for number := range uint64(2) {
		if err := os.Remove(segment.Rotated(path, number+1)); err != nil {
			t.Fatal(err)
		}
	}
	g := count(t, slow, 20)
	check(t, g, 100, slices.Concat(numbers(1, 10), numbers(21, 30)))
	if len(g.problems) != 1 || g.problems[0].Kind != Replaced {
		t.Errorf("problems %v, want one", g.problems)
	}
}
