// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"errors"
	"slices"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// builder makes a chunk's index while it is parsed. What it needs for that is
// used again for the next chunk.
type builder struct {
	entries []entry
	keys    []string
	firsts  []uint32
	lasts   []uint32
	table   map[string]uint32
	cuts    [][]byte
	flaws   []flaw
	parser  format.Parser
}

// reset makes the builder ready for another chunk.
func (b *builder) reset(interval uint32) {
	b.entries, b.firsts, b.lasts, b.flaws = b.entries[:0], b.firsts[:0], b.lasts[:0], nil
	clear(b.keys)
	clear(b.cuts)
	b.keys, b.cuts = b.keys[:0], b.cuts[:0]
	b.table = nil
	b.parser.Interval, b.parser.Spill = interval, nil
}

// key returns the index of a key, which is entered if it is new.
func (b *builder) key(name []byte, intern func([]byte) string) (k uint32, known bool) {
	if n := len(b.entries); n > 0 {
		if k = b.entries[n-1].key; b.keys[k] == string(name) {
			return k, true
		}
	}
	if b.table != nil {
		if k, known = b.table[string(name)]; known {
			return k, true
		}
	} else {
		for i, key := range b.keys {
			if key == string(name) {
				return uint32(i), true
			}
		}
	}
	k = uint32(len(b.keys))
	key := intern(name)
	b.keys = append(b.keys, key)
	switch {
	case b.table != nil:
		b.table[key] = k
	case len(b.keys) > fewKeys:
		b.table = make(map[string]uint32, 4*fewKeys)
		for i, key := range b.keys {
			b.table[key] = uint32(i)
		}
	}
	return k, false
}

// add enters a record.
func (b *builder) add(e entry, name []byte, intern func([]byte) string) {
	i := uint32(len(b.entries))
	k, known := b.key(name, intern)
	e.key = k
	if known {
		b.entries[b.lasts[k]].next = i
		b.lasts[k] = i
	} else {
		b.firsts = append(b.firsts, i)
		b.lasts = append(b.lasts, i)
	}
	b.entries = append(b.entries, e)
}

// chunk returns what was entered as a chunk of its own. held is how much memory
// its bytes keep.
func (b *builder) chunk(s *source, off, next int64, buf []byte, held int) *chunk {
	c := &chunk{src: s, off: off, next: next, buf: buf, held: held, table: b.table, flaws: b.flaws}
	if len(b.cuts) > 0 {
		c.cuts = slices.Clone(b.cuts)
	}
	c.entries = append(c.one.entries[:0:1], b.entries...)
	c.keys = append(c.one.keys[:0:1], b.keys...)
	c.firsts = append(c.one.firsts[:0:1], b.firsts...)
	return c
}

// stop is where parsing a piece ended, and why: at is behind the last whole
// thing, and the others are about what stands there.
type stop struct {
	at     int
	short  int // so many bytes are needed from at on
	damage *format.DamageError
	mark   bool
}

// parse enters the records of buf, which begins at the boundary off of a file
// of the size given.
func (b *builder) parse(buf []byte, off, size int64, intern func([]byte) string) stop {
	var rec format.Record
	at := 0
	for at < len(buf) {
		n, err := b.parser.Next(buf[at:], off+int64(at), &rec)
		if err != nil {
			s := b.refused(err, len(buf)-at, off+int64(at), size)
			s.at = at
			if s.damage == nil || s.damage.Resume == 0 {
				return s
			}
			b.flaws = append(b.flaws, flaw{at: uint32(at), end: uint32(at + s.damage.Resume), problem: passed(s.damage)})
			at += s.damage.Resume
			continue
		}
		if len(rec.Key) == len(format.EndKey) && string(rec.Key) == format.EndKey {
			if rec.IsEnd() && b.nothing(buf, at+n, off, size) {
				return stop{at: at, mark: true}
			}
			at += n
			continue
		}
		b.add(b.entry(buf, off, at, n, &rec), rec.Key, intern)
		at += n
	}
	return stop{at: at}
}

// nothing reports whether nothing follows the boundary at in buf, but a beacon
// that stands there already.
func (b *builder) nothing(buf []byte, at int, off, size int64) bool {
	place := off + int64(at)
	if place == size {
		return true
	}
	if place%int64(b.parser.Interval) != 0 || at >= len(buf) {
		return false
	}
	next, _, err := b.parser.Boundary(buf[at:], place)
	return err == nil && next == size
}

// entry makes an entry of a record that Next read from buf[at:at+n].
func (b *builder) entry(buf []byte, off int64, at, n int, rec *format.Record) entry {
	size := len(rec.Payload)
	e := entry{
		sequence: rec.Sequence, time: rec.Time,
		at: uint32(at), end: uint32(at + n), from: uint32(at + n - recordTail - size), size: uint32(size),
	}
	if (off+int64(at))%int64(b.parser.Interval) == 0 {
		// The record begins behind the beacon that stands at its boundary.
		if next, _, err := b.parser.Boundary(buf[at:], off+int64(at)); err == nil {
			e.at = uint32(next - off)
		}
	}
	if int(e.end-e.at) != format.RecordLen(rec.Key, size) {
		e.from = uint32(len(b.cuts)) | isCut
		b.cuts = append(b.cuts, rec.Payload)
	}
	return e
}

// recordTail is what follows a record's payload: checksum and closing byte.
const recordTail = 3

// refused says why a record could not be read, of which the rest of a piece,
// have bytes, was given. Where damage at the end of a piece or of the file
// looks smaller than it may be, more is needed or it is held back.
func (b *builder) refused(err error, have int, off, size int64) stop {
	if short, ok := errors.AsType[*format.ShortError](err); ok {
		return stop{short: short.Need}
	}
	damage, ok := errors.AsType[*format.DamageError](err)
	if !ok {
		return stop{damage: &format.DamageError{Offset: off, Reason: err.Error()}}
	}
	if damage.Resume == 0 {
		return stop{damage: damage}
	}
	const look = 1 + format.MaxKey // of what follows
	switch {
	case off+int64(damage.Resume) >= size:
		damage.Resume = 0
	case have-damage.Resume < look && off+int64(have) < size:
		return stop{short: min(damage.Resume+look, int(size-off))}
	}
	return stop{damage: damage}
}

// passed makes a problem of a record that is passed alone.
func passed(d *format.DamageError) *Problem {
	return &Problem{Kind: Damage, Offset: d.Offset, Key: d.Key, Sequence: d.Sequence, Skipped: int64(d.Resume), Reason: d.Reason + "; the record is passed"}
}
