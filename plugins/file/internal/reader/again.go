// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"errors"
	"io"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// usualRecord is how much is read for one record at first.
const usualRecord = 8 << 10

// Read returns the record at a place once more. It may be called beside Next.
// A record that is damaged or whose file is gone is a *[Problem], a place behind
// the end a *[PositionError].
func (c *Cursor) Read(ctx context.Context, at Place) (Record, error) {
	if err := c.usable(ctx); err != nil {
		return Record{}, err
	}
	s, err := c.r.created(at.Created)
	if err != nil {
		return Record{}, err
	}
	defer c.r.leave(s)
	if rec, ok := c.r.kept(s, at.Offset); ok {
		return rec, nil
	}
	size, change, err := s.examine()
	switch {
	case err != nil:
		return Record{}, err
	case change != nil:
		return Record{}, &Problem{Kind: change.kind, Path: s.file.Path, Offset: at.Offset, Reason: change.reason}
	case at.Offset < format.HeaderSize || at.Offset >= size:
		return Record{}, &PositionError{Path: s.file.Path, Offset: at.Offset, Size: size}
	}
	return s.single(at, size)
}

// kept returns a record that is in the cache.
func (r *Reader) kept(s *source, off int64) (Record, bool) {
	r.cache.mu.Lock()
	defer r.cache.mu.Unlock()
	ch := s.covering(off)
	if ch == nil {
		return Record{}, false
	}
	at := uint32(off - ch.off)
	i := ch.search(at)
	if i == len(ch.entries) || ch.entries[i].at != at {
		return Record{}, false
	}
	ch.shared = true
	return ch.record(&ch.entries[i]), true
}

// single reads one record without a chunk.
func (s *source) single(at Place, size int64) (Record, error) {
	p := format.Parser{Interval: s.header.Interval}
	var rec format.Record
	for n := min(usualRecord, size-at.Offset); ; {
		buf := make([]byte, n)
		if err := s.readFull(buf, at.Offset); err != nil {
			return Record{}, err
		}
		used, err := p.Next(buf, at.Offset, &rec)
		if err == nil {
			b := builder{parser: p}
			e := b.entry(buf, at.Offset, 0, used, &rec)
			return Record{
				Key: s.r.intern(rec.Key), Sequence: rec.Sequence, Time: rec.Time, Payload: rec.Payload,
				At: Place{Created: at.Created, Offset: at.Offset + int64(e.at)},
			}, nil
		}
		if damage, ok := errors.AsType[*format.DamageError](err); ok {
			return Record{}, s.damage(damage)
		}
		short, ok := errors.AsType[*format.ShortError](err)
		if !ok || at.Offset+int64(short.Need) > size {
			return Record{}, &Problem{Kind: TornTail, Path: s.file.Path, Offset: at.Offset, Reason: "the record is not whole: " + io.ErrUnexpectedEOF.Error()}
		}
		n = max(int64(short.Need), n+1)
	}
}
