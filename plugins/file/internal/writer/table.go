// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// key is what the writer knows of a stream key.
type key struct {
	name     string
	sequence uint64 // of its latest record, in whichever file of the path
	time     int64  // the latest of its records' times
	last     uint16 // checksum of its latest record, as far as known
	running  uint16 // checksum within the file that is written
	here     bool   // it has records in the file that is written
	batch    uint64 // in which it was changed last
}

// table holds the keys of a path. Changes since begin can be taken back.
type table struct {
	keys   map[string]*key
	sorted []*key // those of the file that is written, by name
	fresh  []*key // the same, not yet sorted in
	listed int    // markers in beacons since the file was opened: whose turn it is

	longest int // of the names that have been in the file

	high bool // a sequence may come to its end

	batch   uint64
	before  []key // what the keys changed in this batch were, new ones with sequence 0
	listed0 int

	markers []format.Marker
}

func newTable() *table { return &table{keys: make(map[string]*key)} }

// begin makes what has been changed so far final.
func (t *table) begin() {
	t.batch++
	t.before = t.before[:0]
	t.listed0 = t.listed
}

// rollback takes back what was changed since begin.
func (t *table) rollback() {
	gone := false
	for _, old := range t.before {
		k := t.keys[old.name]
		gone = gone || k.here && !old.here
		*k = old
		if old.sequence == 0 {
			delete(t.keys, old.name)
		}
	}
	if gone {
		left := func(k *key) bool { return !k.here }
		t.sorted = slices.DeleteFunc(t.sorted, left)
		t.fresh = slices.DeleteFunc(t.fresh, left)
	}
	t.listed = t.listed0
	t.begin()
}

// next counts a record of a key in. The name must be valid.
func (t *table) next(name string, time int64) *key {
	k := t.keys[name]
	if k == nil {
		k = &key{name: strings.Clone(name)}
		t.keys[k.name] = k
	}
	if k.batch != t.batch {
		t.before = append(t.before, *k)
		k.batch = t.batch
	}
	k.sequence++
	t.place(k)
	k.time = max(k.time, time)
	return k
}

// place puts a key among those of the file.
func (t *table) place(k *key) {
	if !k.here {
		k.here, k.running, k.time = true, format.NoChecksum, 0
		t.fresh = append(t.fresh, k)
		t.longest = max(t.longest, len(k.name))
	}
}

// know takes over what a file says of a key, where that is newer. Like the
// reference, it begins the running checksum anew with the last record's.
func (t *table) know(name string, sequence uint64, time int64, last uint16, here bool) {
	k := t.keys[name]
	if k == nil {
		k = &key{name: name}
		t.keys[name] = k
	}
	if here {
		t.place(k)
	}
	if sequence >= k.sequence {
		k.sequence, k.time, k.last, k.running = sequence, max(k.time, time), last, last
	}
	t.high = t.high || sequence > highSequence
}

// highSequence is so high that no writer gets there in its life, and so far from
// the end that none gets from there to it.
const highSequence = math.MaxUint64 - 1<<62

// ended reports whether a key has the highest sequence there is.
func (t *table) ended(name string) bool {
	if !t.high {
		return false
	}
	k := t.keys[name]
	return k != nil && k.sequence == math.MaxUint64
}

// leave begins another file, in which no key has a record yet.
func (t *table) leave() {
	for _, k := range t.sorted {
		k.here = false
	}
	for _, k := range t.fresh {
		k.here = false
	}
	t.sorted, t.fresh, t.listed = t.sorted[:0], t.fresh[:0], 0
	t.longest = 0
}

// list returns all keys.
func (t *table) list() []key {
	list := make([]key, 0, len(t.keys)+1)
	for _, k := range t.keys {
		list = append(list, *k)
	}
	return list
}

// len is how many keys the file has.
func (t *table) len() int { return len(t.sorted) + len(t.fresh) }

// beacon returns the markers that are next in turn, at most slots. They are
// good until the next call.
func (t *table) beacon(slots int) []format.Marker {
	if len(t.fresh) > 0 {
		byName := func(a, b *key) int { return cmp.Compare(a.name, b.name) }
		slices.SortFunc(t.fresh, byName)
		t.sorted = merge(t.sorted, t.fresh, byName)
		t.fresh = t.fresh[:0]
	}
	t.markers = t.markers[:0]
	for n := range min(slots, len(t.sorted)) {
		k := t.sorted[(t.listed+n)%len(t.sorted)]
		t.markers = append(t.markers, format.Marker{
			Head:     format.Head{Key: k.name, Sequence: k.sequence, Time: k.time},
			Checksum: k.running,
		})
	}
	t.listed += len(t.markers)
	return t.markers
}

// merge merges more into list, both sorted, from the back.
func merge[T any](list, more []T, order func(a, b T) int) []T {
	i, j := len(list)-1, len(more)-1
	list = slices.Grow(list, len(more))[:len(list)+len(more)]
	for at := len(list) - 1; j >= 0; at-- {
		if i >= 0 && order(list[i], more[j]) > 0 {
			list[at] = list[i]
			i--
		} else {
			list[at] = more[j]
			j--
		}
	}
	return list
}
