// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/index"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// Cursor returns a cursor that delivers what matches from a start on. A replay
// ends with what there is, a live cursor goes on. A position beyond the end is
// a *[PositionError].
func (r *Reader) Cursor(m Match, s Start, replay bool) (*Cursor, error) {
	c := &Cursor{r: r, match: m, replay: replay, closed: make(chan struct{})}
	at, err := r.find(m, s)
	if err != nil {
		return nil, err
	}
	c.begin(at)
	r.mu.Lock()
	closed := r.closed
	if !closed {
		r.cursors[c] = struct{}{}
		r.reading.Add(1)
	}
	r.mu.Unlock()
	if closed {
		c.Close()
		return nil, ErrClosed
	}
	return c, nil
}

// Seek puts the cursor at another start; a replay that has caught up reads
// again. Where that is refused the cursor stays where it was.
func (c *Cursor) Seek(ctx context.Context, s Start) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(ctx); err != nil {
		return err
	}
	at, err := c.r.find(c.match, s)
	if err != nil {
		return err
	}
	c.begin(at)
	return nil
}

// beginning is where a start is: a boundary in a source that the holder has a
// part in.
type beginning struct {
	src      *source
	off      int64
	from     filter
	mark     bool       // an end mark stands there and ends nothing
	problems []*Problem // to be told first
}

// begin puts the cursor at a beginning.
func (c *Cursor) begin(b beginning) {
	c.stand(b.src, b.off)
	c.from, c.quiet, c.pending, c.unrest = b.from, false, b.problems, unrest{}
	if b.mark {
		c.ended = b.off
	}
}

// find finds out where a start is.
func (r *Reader) find(m Match, s Start) (beginning, error) {
	switch s.Kind {
	case Beginning:
		return r.oldest()
	case End:
		return r.newest()
	case Sequence:
		return r.sequence(m, s.Sequence)
	case Time:
		return r.time(m, s.Time)
	case At:
		return r.place(m, s.At)
	}
	return beginning{}, fmt.Errorf("start of kind %d", s.Kind)
}

// oldest begins with the first segment there is that can be read.
func (r *Reader) oldest() (beginning, error) {
	for {
		b := beginning{off: format.HeaderSize}
		list, err := segment.List(r.path)
		if err != nil {
			return b, err
		}
		for len(list) > 0 && !list[0].Active {
			b.src, err = r.join(list[0])
			p := unreadable(list[0], err)
			if p == nil {
				break
			}
			b.problems, list = append(b.problems, p), list[1:]
		}
		if len(list) == 0 || list[0].Active {
			b.src, err = r.active()
			return b, err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
	}
}

// newest begins behind all that stands in the active file.
func (r *Reader) newest() (beginning, error) {
	s, err := r.active()
	if err != nil {
		return beginning{}, err
	}
	off, err := r.known(s)
	if err != nil {
		r.leave(s)
		return beginning{}, err
	}
	return r.behind(s, off)
}

// known returns a boundary near the end of a file.
func (r *Reader) known(s *source) (int64, error) {
	size, change, err := s.examine()
	if err != nil || change != nil {
		return format.HeaderSize, err
	}
	r.cache.mu.Lock()
	m := s.memo
	r.cache.mu.Unlock()
	if near := size - m.off; m.standing != something && m.standing != changed && 0 <= near && near <= int64(s.header.Interval) {
		return m.off, nil
	}
	var t *index.Tail
	err = s.steady(size, func(size int64) error {
		t, err = index.FindTail(s.file, size, s.header)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("find the end of %s: %w", s.file.Path, err)
	}
	return t.End, nil
}

// steady calls look with the size of a file, again if that has become less
// meanwhile: a writer that starts cuts off what the one before it left.
func (s *source) steady(size int64, look func(size int64) error) error {
	err := look(size)
	for errors.Is(err, io.ErrUnexpectedEOF) {
		now, change, examined := s.examine()
		if examined != nil || change != nil || now >= size {
			return err
		}
		size = now
		err = look(size)
	}
	return err
}

// behind begins behind what stands in a source now, going there from a
// boundary. An end mark there does not end the cursor, and a record in the
// making is its first.
func (r *Reader) behind(s *source, off int64) (beginning, error) {
	for {
		f, err := r.at(context.Background(), s, off, anew)
		if err != nil {
			r.leave(s)
			return beginning{}, err
		}
		if f.chunk != nil {
			off = f.chunk.next
			continue
		}
		b := beginning{src: s, off: off, mark: f.standing == marked}
		if f.standing == damaged {
			b.from = filter{floor: f.size, created: s.header.Created}
		}
		return b, nil
	}
}

// place begins at a place, or with the first record behind it where none
// begins there.
func (r *Reader) place(m Match, p Place) (beginning, error) {
	s, err := r.created(p.Created)
	if err != nil {
		return beginning{}, err
	}
	b, err := r.aligned(m, s, max(p.Offset, format.HeaderSize))
	if err != nil {
		r.leave(s)
	}
	return b, err
}

func (r *Reader) aligned(m Match, s *source, off int64) (beginning, error) {
	size, _, err := s.examine()
	if err != nil {
		return beginning{}, err
	}
	if size < off {
		return beginning{}, &PositionError{Path: s.file.Path, Key: m.String(), Offset: off, Size: size}
	}
	b := beginning{src: s, off: off}
	f, err := r.at(context.Background(), s, off, anew)
	if err != nil || f.standing != damaged && (f.chunk == nil || f.chunk.off != off || len(f.chunk.flaws) == 0 || f.chunk.flaws[0].at > 0) {
		return b, err
	}
	t, err := index.FindTail(s.file, off, s.header)
	if err != nil {
		return beginning{}, fmt.Errorf("find the record at offset %d of %s: %w", off, s.file.Path, err)
	}
	if t.End < off && t.Damage == nil {
		b.off, b.from = t.End, filter{floor: off, created: s.header.Created}
	}
	return b, nil
}

// created joins the segment created then. A segment that is not there any more
// is a *Problem.
func (r *Reader) created(at int64) (*source, error) {
	r.mu.Lock()
	for key, s := range r.sources {
		if key.created == at {
			s.refs++
			r.mu.Unlock()
			return s, nil
		}
	}
	r.mu.Unlock()
	list, err := segment.List(r.path)
	if err != nil {
		return nil, err
	}
	for i := len(list) - 1; i >= 0; i-- {
		s, err := r.join(list[i])
		switch {
		case err != nil && errors.Is(err, fs.ErrNotExist), unreadable(list[i], err) != nil:
			continue
		case err != nil:
			return nil, err
		case s.header.Created == at:
			return s, nil
		}
		older := s.header.Created < at
		r.leave(s)
		if older {
			break
		}
	}
	return nil, &Problem{Kind: Gone, Path: r.path, Reason: fmt.Sprintf("no file created at %d (ms) is there any more", at)}
}
