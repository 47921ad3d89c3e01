// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// seal finds out, once a generation, whether a source is no longer the active
// file: then nobody writes it any more.
func (r *Reader) seal(s *source, gen uint64) (bool, error) {
	c := &r.cache
	c.mu.Lock()
	sealed, checked := s.sealed, s.checked > gen
	c.mu.Unlock()
	if sealed || checked {
		return sealed, nil
	}
	id, err := segment.IdentifyPath(r.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// Between two renames of a rotation, or deleted.
	case err != nil:
		return false, err
	default:
		sealed = id != s.file.ID
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.sealed = s.sealed || sealed
	s.checked = gen + 1
	return s.sealed, nil
}

// advance leaves a segment that nobody writes any more and that has been read
// to its end.
func (c *Cursor) advance(ctx context.Context, gen uint64, f *found, b *Batch) error {
	if err := c.tell(f, b); err != nil {
		return err
	}
	next, problem, err := c.r.after(c.src, c.off)
	if err != nil {
		return err
	}
	if problem != nil {
		b.Problems = append(b.Problems, problem)
	}
	if next != nil {
		if next.header.Created != c.from.created {
			c.from.floor = 0
		}
		c.stand(next, format.HeaderSize)
		return nil
	}
	return c.lull(ctx, gen, b)
}

// lull is where there is no file to go on with: a replay has caught up.
func (c *Cursor) lull(ctx context.Context, gen uint64, b *Batch) error {
	if c.replay {
		b.CaughtUp, c.quiet = true, true
	}
	if b.empty() {
		return c.r.watch.wait(ctx, c.closed, gen)
	}
	return nil
}

// after joins the segment that follows s, of which off bytes have been read.
// There may be none yet. The problem says what is missing in between, or that
// another file stands in the place of s.
func (r *Reader) after(s *source, off int64) (*source, *Problem, error) {
	list, err := segment.List(r.path)
	if err != nil {
		return nil, nil, err
	}
	number, there := s.file.Number, false
	rest := list
	for i, seg := range list {
		if id, err := segment.IdentifyPath(seg.Path); err == nil && id == s.file.ID {
			number, there, rest = seg.Number, true, list[i+1:]
		}
	}
	var problem *Problem
	if !there {
		rest = from(list, number)
		if len(rest) > 0 && rest[0].Number == number || len(rest) == 0 && len(list) > 0 {
			if len(rest) == 0 {
				rest = list
			}
			problem = &Problem{Kind: Replaced, Path: r.path, Offset: off, Reason: "another file stands there; reading goes on at its beginning"}
			number = rest[0].Number - 1
		}
	}
	if len(rest) == 0 {
		return nil, nil, nil
	}
	if missing := rest[0].Number - number - 1; missing > 0 {
		problem = gone(r.path, number+1, missing)
	}
	next, err := r.enter(rest[0])
	return next, problem, err
}

// enter joins a segment of a list, unless it has another name by now or is in
// the making.
func (r *Reader) enter(seg segment.Segment) (*source, error) {
	join := r.join
	if seg.Active {
		join = func(segment.Segment) (*source, error) { return r.active() }
	}
	s, err := join(seg)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if kind, ok := errors.AsType[*segment.KindError](err); ok && kind.Short {
		return nil, nil
	}
	if err == nil && s.file.Number != seg.Number {
		r.leave(s)
		return nil, nil
	}
	return s, err
}

// from returns the segments of a number or later ones.
func from(list []segment.Segment, number uint64) []segment.Segment {
	for i, seg := range list {
		if seg.Number >= number {
			return list[i:]
		}
	}
	return nil
}

// gone says that segments are missing.
func gone(path string, first, count uint64) *Problem {
	return &Problem{
		Kind: Gone, Path: segment.Rotated(path, first),
		Reason: fmt.Sprintf("it and what follows it, %d files, were removed before they were read; reading goes on in the next one", count),
	}
}

// active joins the active file, with its number as it is while it is open.
func (r *Reader) active() (*source, error) {
	for range math.MaxInt8 {
		list, err := segment.List(r.path)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, &fs.PathError{Op: "open", Path: r.path, Err: fs.ErrNotExist}
		}
		seg := list[len(list)-1]
		s, err := r.join(seg)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		again, listErr := segment.List(r.path)
		if listErr == nil && err == nil && len(again) > 0 && again[len(again)-1] == seg {
			return s, nil
		}
		if err == nil {
			r.leave(s)
		}
		if listErr != nil {
			return nil, listErr
		}
	}
	return nil, fmt.Errorf("open %s: it is rotated faster than it can be opened", r.path)
}

// changed leaves a source whose file has become another one, or shorter.
func (c *Cursor) changed(f *found, b *Batch) error {
	s := c.src
	c.r.kill(s)
	p := &Problem{Kind: f.change.kind, Path: s.file.Path, Offset: c.off, Reason: f.change.reason}
	b.Problems = append(b.Problems, p)
	c.from = filter{}
	sealed, err := c.r.seal(s, f.gen)
	if err != nil {
		return err
	}
	if sealed {
		next, missing, err := c.r.after(s, c.off)
		if err != nil {
			return err
		}
		if missing != nil {
			b.Problems = append(b.Problems, missing)
		}
		p.Reason += "; reading goes on in the next file"
		c.stand(next, format.HeaderSize)
		return nil
	}
	if f.change.kind == Shrunk && f.size >= format.HeaderSize {
		kept, err := c.r.cut(s)
		if err != nil {
			return err
		}
		if kept.src != nil {
			p.Reason += "; reading goes on at its end"
			c.begin(kept)
			return nil
		}
	}
	p.Reason += "; reading goes on at the beginning"
	c.stand(nil, c.off)
	return nil
}

// rejoin waits for a file to stand at the path, and goes on at its beginning.
func (c *Cursor) rejoin(ctx context.Context, gen uint64, b *Batch) error {
	s, err := c.r.active()
	if err == nil {
		c.stand(s, format.HeaderSize)
		return nil
	}
	kind, ok := errors.AsType[*segment.KindError](err)
	switch {
	case ok && !kind.Short && c.told != 0:
		c.told = 0
		b.Problems = append(b.Problems, &Problem{Kind: Replaced, Path: c.r.path, Offset: kind.Offset, Reason: kind.Reason + "; reading waits for a stream file"})
	case !ok && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return c.lull(ctx, gen, b)
}

// cut begins at the end of a file that lost its last bytes and is the same
// before them. Otherwise it returns nothing.
func (r *Reader) cut(s *source) (beginning, error) {
	now, err := r.active()
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*segment.KindError)) {
		return beginning{}, nil
	}
	if err != nil {
		return beginning{}, err
	}
	same, err := r.same(s, now)
	if err != nil || !same {
		r.leave(now)
		return beginning{}, err
	}
	off, err := r.known(now)
	if err != nil {
		r.leave(now)
		return beginning{}, err
	}
	return r.behind(now, off)
}

// same compares what is kept of a source with what its file has now.
func (r *Reader) same(s, now *source) (bool, error) {
	if now.key() != s.key() {
		return false, nil
	}
	size, change, err := now.examine()
	if err != nil || change != nil {
		return false, err
	}
	r.cache.mu.Lock()
	var kept *chunk
	for _, c := range s.chunks {
		if c.off < size && len(c.buf) > 0 {
			kept = c
		}
	}
	r.cache.mu.Unlock()
	if kept == nil {
		return true, nil
	}
	had := kept.buf[:min(int64(len(kept.buf)), size-kept.off)]
	has := make([]byte, len(had))
	if err := now.readFull(has, kept.off); err != nil {
		return false, err
	}
	return bytes.Equal(has, had), nil
}
