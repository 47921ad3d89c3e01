// SPDX-License-Identifier: Apache-2.0

// Package formattest builds stream files for tests, as the reference writes
// them, by the shortest code that does: one record after the other, cut at the
// places of beacons.
package formattest

import (
	"maps"
	"slices"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// Born is when the files that New begins are created.
const Born = 1_700_000_000_000

// Placed is a record that was added.
type Placed struct {
	format.Head
	Payload []byte
	At      int64 // where it begins
	End     int64 // behind it; a beacon may follow
}

// Builder builds one file. Its fields may be changed between calls.
type Builder struct {
	Header  format.Header
	Bytes   []byte
	Records []Placed
	Slots   int // markers a beacon has at most

	states map[string]format.Marker
	turn   int // markers written so far
}

// New begins a file.
func New(interval uint32) *Builder {
	h := format.Header{Name: "test.ss", Created: Born, Interval: interval}
	return &Builder{
		Header: h,
		Bytes:  h.Append(nil),
		Slots:  format.Slots(interval),
		states: map[string]format.Marker{},
	}
}

// Prime adds the record that the reference begins files with.
func (b *Builder) Prime() { b.Add(format.PrimeKey, "1") }

// Add adds a record with the key's next sequence, one millisecond after the
// record before it.
func (b *Builder) Add(key, payload string) Placed {
	h := format.Head{Key: key, Sequence: b.states[key].Sequence + 1, Time: Born + int64(len(b.Records)) + 1}
	return b.Put(h, []byte(payload))
}

// End adds an end mark.
func (b *Builder) End() Placed {
	return b.Put(format.Head{Key: format.EndKey, Time: Born + int64(len(b.Records)) + 1}, []byte(format.EndPayload))
}

// Reopen forgets what the next beacons would have said, as the reference does
// when it opens a file that is there: it names the keys of this run alone.
func (b *Builder) Reopen() {
	b.states, b.turn = map[string]format.Marker{}, 0
}

// Put adds a record as it is given.
func (b *Builder) Put(h format.Head, payload []byte) Placed {
	state, known := b.states[h.Key]
	if !known {
		state.Checksum = format.NoChecksum
	}
	state.Head = h
	state.Checksum = format.Running(state.Checksum, format.Checksum(payload))
	b.states[h.Key] = state

	p := Placed{Head: h, Payload: payload, At: int64(len(b.Bytes))}
	rest := format.AppendRecord(nil, h, payload)
	for len(rest) > 0 {
		n := min(len(rest), int(b.Header.Interval)-len(b.Bytes)%int(b.Header.Interval))
		b.Bytes, rest = append(b.Bytes, rest[:n]...), rest[n:]
		p.End = int64(len(b.Bytes))
		if len(b.Bytes)%int(b.Header.Interval) == 0 {
			b.Bytes = format.AppendBeacon(b.Bytes, b.beacon(len(rest)))
		}
	}
	b.Records = append(b.Records, p)
	return p
}

// beacon takes the keys in turns.
func (b *Builder) beacon(remaining int) format.Beacon {
	keys := slices.Sorted(maps.Keys(b.states))
	out := format.Beacon{Remaining: uint32(remaining)}
	for i := range min(len(keys), b.Slots) {
		out.Markers = append(out.Markers, b.states[keys[(b.turn+i)%len(keys)]])
	}
	b.turn += len(out.Markers)
	return out
}
