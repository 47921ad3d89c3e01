// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"slices"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
)

// block is bytes that go to the end of the file in one write.
type block struct {
	bytes []byte
	off   int64 // in the file, of bytes[0]

	interval uint32
	slots    int

	beacons []byte // those that cut the record at hand
	cuts    []cut
}

// cut is where a beacon goes into a record.
type cut struct {
	at  int // byte of the record that comes behind it
	end int // of the beacon in block.beacons; it begins where the one before ends
}

// record appends the next record of a key, with the beacons that are due
// within it and right behind it. The key must be valid, size what the payload
// will take.
func (b *block) record(t *table, name string, headers core.Headers, payload []byte, size int, wrapped bool, time int64) uint64 {
	k := t.next(name, time)
	start := len(b.bytes)
	b.bytes = slices.Grow(b.bytes, format.RecordLen(name, size))
	b.bytes = format.AppendHead(b.bytes, format.Head{Key: name, Sequence: k.sequence, Time: time}, size)
	body := len(b.bytes)
	if wrapped {
		b.bytes = envelope.Append(b.bytes, headers, payload)
	} else {
		b.bytes = append(b.bytes, payload...)
	}
	b.finish(t, k, start, body)
	return k.sequence
}

// end appends an end mark. Like the reference's, a beacon that cuts it lists it
// with the keys.
func (b *block) end(t *table, time int64) {
	k := t.next(format.EndKey, time)
	k.sequence = 0
	start := len(b.bytes)
	b.bytes = format.AppendHead(b.bytes, format.Head{Key: format.EndKey, Time: time}, len(format.EndPayload))
	body := len(b.bytes)
	b.bytes = append(b.bytes, format.EndPayload...)
	b.finish(t, k, start, body)
}

// finish closes the record that begins at start and puts beacons into it.
func (b *block) finish(t *table, k *key, start, body int) {
	checksum := format.Checksum(b.bytes[body:])
	b.bytes = format.AppendTail(b.bytes, checksum)
	k.last = checksum
	k.running = format.Running(k.running, checksum)
	off := b.off + int64(start)
	room := format.NextPlace(off+1, b.interval) - off
	if length := len(b.bytes) - start; int64(length) >= room {
		b.splice(t, start, length, int(room))
	}
}

// splice puts beacons into a record of length bytes: the first before its byte
// at, the others each interval behind the one before.
func (b *block) splice(t *table, start, length, at int) {
	b.beacons, b.cuts = b.beacons[:0], b.cuts[:0]
	for at <= length {
		from := len(b.beacons)
		b.beacons = format.AppendBeacon(b.beacons, format.Beacon{
			Remaining: uint32(length - at),
			Markers:   t.beacon(b.slots),
		})
		b.cuts = append(b.cuts, cut{at: at, end: len(b.beacons)})
		if at == length {
			break
		}
		at += int(b.interval) - (len(b.beacons) - from)
	}
	// From the back, so that each byte moves once.
	b.bytes = slices.Grow(b.bytes, len(b.beacons))[:start+length+len(b.beacons)]
	rec := b.bytes[start:]
	for i := len(b.cuts) - 1; i >= 0; i-- {
		c, from := b.cuts[i], 0
		if i > 0 {
			from = b.cuts[i-1].end
		}
		copy(rec[c.at+c.end:], rec[c.at:length])
		copy(rec[c.at+from:], b.beacons[from:c.end])
		length = c.at
	}
}

// most is the most that a record of length bytes takes in the file, the beacons
// included that are due within it.
func (b *block) most(t *table, name string, length int) int64 {
	beacon := (format.Beacon{}).Len() + min(b.slots, t.len()+1)*(max(t.longest, len(name))+markerLen)
	off := (b.off + int64(len(b.bytes))) % int64(b.interval)
	if off+int64(length) < int64(b.interval) {
		return int64(length)
	}
	beacons := 1 + (off+int64(length)-int64(b.interval))/int64(int(b.interval)-beacon)
	return int64(length) + beacons*int64(beacon)
}

// markerLen is what a marker takes besides its key.
const markerLen = format.RecordOverhead - 4 - 1 // as a record, but for payload length and closing byte

// reset empties the block, and lets a large one go.
func (b *block) reset(off int64) {
	b.off = off
	b.bytes = kept(b.bytes)
	b.beacons = kept(b.beacons)
}

func kept(b []byte) []byte {
	if cap(b) > maxKept {
		return nil
	}
	return b[:0]
}
