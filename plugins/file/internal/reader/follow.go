// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// seal finds out, once a generation, whether a source is no longer the active
// file: then nobody writes it any more. There may be no active file.
func (r *Reader) seal(s *source, gen uint64) (sealed, missing bool, err error) {
	c := &r.cache
	c.mu.Lock()
	sealed, missing = s.sealed, s.missing
	checked := s.checked > gen
	c.mu.Unlock()
	if sealed || checked {
		return sealed, missing, nil
	}
	if gen == anew {
		gen = r.watch.generation()
	}
	id, err := segment.IdentifyPath(r.path)
	missing = errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return false, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.sealed = s.sealed || !missing && id != s.file.ID
	s.missing, s.checked = missing, gen+1
	return s.sealed, missing, nil
}

// absent is at the end of a file that stands at the path no more, with no other
// one in its place.
func (c *Cursor) absent(ctx context.Context, gen uint64, b *Batch) error {
	now := time.Now()
	if c.absence.until.IsZero() {
		c.absence.until = now.Add(removed)
	}
	if now.Before(c.absence.until) {
		return c.pause(ctx, gen, c.absence.until)
	}
	c.absence.told = true
	b.Problems = append(b.Problems, &Problem{
		Kind: Gone, Path: c.r.path, Offset: c.off, Reason: "the file was removed or renamed; the next one at its path is read from its beginning",
	})
	return nil
}

// advance leaves a segment that nobody writes any more and that has been read
// to its end.
func (c *Cursor) advance(ctx context.Context, gen uint64, f *found, b *Batch) error {
	if err := c.tell(f, b); err != nil {
		return err
	}
	next, problems, err := c.r.after(c.src, c.off)
	if err != nil {
		return err
	}
	b.Problems = append(b.Problems, problems...)
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
// There may be none yet. The problems say what is missing in between or cannot
// be read, or that another file stands in the place of s.
func (r *Reader) after(s *source, off int64) (*source, []*Problem, error) {
	if next := r.neighbour(s); next != nil {
		return next, nil, nil
	}
	list, err := segment.List(r.path)
	if err != nil {
		return nil, nil, err
	}
	var problems []*Problem
	number := r.number(s)
	rest := from(list, number)
	if i, there := place(list, number, s.file.ID); there {
		number, rest = list[i].Number, list[i+1:]
	} else if len(rest) > 0 && rest[0].Number == number || len(rest) == 0 && len(list) > 0 {
		if len(rest) == 0 {
			rest = list
		}
		problems = append(problems, &Problem{Kind: Replaced, Path: r.path, Offset: off, Reason: "another file stands there; reading goes on at its beginning"})
		number = rest[0].Number - 1
	}
	for _, seg := range rest {
		if missing := seg.Number - number - 1; missing > 0 {
			problems = append(problems, gone(r.path, number+1, missing))
		}
		number = seg.Number
		next, err := r.enter(seg)
		if p := unreadable(seg, err); p != nil {
			problems = append(problems, p)
			continue
		}
		if next == nil {
			problems = nil
		}
		return next, problems, err
	}
	return nil, nil, nil
}

// neighbour joins the segment with the next number by its name, where s has the
// name of its number: the folder of a path may be large. Otherwise it is nil.
func (r *Reader) neighbour(s *source) *source {
	number := r.number(s)
	id, err := segment.IdentifyPath(segment.Rotated(r.path, number))
	if err != nil || id != s.file.ID {
		return nil
	}
	next, err := r.join(segment.Segment{Number: number + 1, Path: segment.Rotated(r.path, number+1)})
	if err != nil {
		return nil // the list says why
	}
	return next
}

// place returns where in a list a file stands, whose number is known as a rule.
func place(list []segment.Segment, number uint64, id segment.ID) (int, bool) {
	is := func(seg segment.Segment) bool {
		there, err := segment.IdentifyPath(seg.Path)
		return err == nil && there == id
	}
	usual := len(list) - len(from(list, number))
	if usual < len(list) && is(list[usual]) {
		return usual, true
	}
	for i, seg := range slices.Backward(list) {
		if is(seg) {
			return i, true
		}
	}
	return 0, false
}

// unreadable makes a problem of the error of opening a rotated segment that is
// no stream file: it will be none. Otherwise it is nil.
func unreadable(seg segment.Segment, err error) *Problem {
	kind, ok := errors.AsType[*segment.KindError](err)
	if !ok || seg.Active {
		return nil
	}
	return &Problem{Kind: Damage, Path: seg.Path, Offset: kind.Offset, Reason: kind.Reason + "; reading goes on in the next file"}
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
	if kind, ok := errors.AsType[*segment.KindError](err); ok && kind.Short && seg.Active {
		return nil, nil
	}
	if err == nil && r.number(s) != seg.Number {
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
