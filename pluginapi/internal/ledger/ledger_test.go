// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A ledger does what a map would do, whatever is held, removed and grown.
func TestLedgerIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New(rapid.Uint64Range(0, 100).Draw(t, "window"))
		model := map[uint64]Entry{}
		next := uint64(1)
		bytes := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 200).Draw(t, "n") {
					e := Entry{Handle: next, Bytes: rapid.Int64Range(0, 9).Draw(t, "bytes"), Profile: uint32(next % 3)}
					if id := l.Add(e); id != next {
						t.Fatalf("id %d, want %d", id, next)
					}
					e.ID = next
					model[next] = e
					bytes += e.Bytes
					next++
				}
			},
			"remove": func(t *rapid.T) {
				for range rapid.IntRange(1, 150).Draw(t, "n") {
					id := rapid.Uint64Range(0, next+2).Draw(t, "id")
					e, ok := model[id]
					if got := l.Remove(id); got != ok {
						t.Fatalf("remove %d: %v, want %v", id, got, ok)
					}
					delete(model, id)
					bytes -= e.Bytes
				}
			},
			"grow": func(t *rapid.T) { l.Fit(rapid.Uint64Range(0, 2000).Draw(t, "window")) },
			"within": func(t *rapid.T) {
				first := rapid.Uint64Range(0, next+2).Draw(t, "first")
				last := rapid.Uint64Range(0, next+2).Draw(t, "last")
				want := []uint64{}
				for id := range model {
					if id >= first && id <= last {
						want = append(want, id)
					}
				}
				slices.Sort(want)
				if d := cmp.Diff(want, l.Within([]uint64{}, first, last)); d != "" {
					t.Fatalf("within %d and %d (-want +got):\n%s", first, last, d)
				}
			},
			"": func(t *rapid.T) {
				if n, b := l.Outstanding(); n != len(model) || b != bytes {
					t.Fatalf("outstanding %d and %d, want %d and %d", n, b, len(model), bytes)
				}
				if l.Next() != next {
					t.Fatalf("next %d, want %d", l.Next(), next)
				}
				for id, want := range model {
					if got := l.Find(id); got == nil || *got != want {
						t.Fatalf("find %d: %+v, want %+v", id, got, want)
					}
				}
				if n := len(l.All(nil)); n != len(model) {
					t.Fatalf("%d in all, want %d", n, len(model))
				}
			},
		})
	})
}

func BenchmarkAddFindRemove(b *testing.B) {
	l := New(1024)
	b.ReportAllocs()
	for b.Loop() {
		id := l.Add(Entry{Bytes: 512})
		if l.Find(id) == nil || !l.Remove(id) {
			b.Fatal("lost")
		}
	}
}
