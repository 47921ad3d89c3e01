// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/longshore-go/longshore/plugins/file/internal/index"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// search looks for the first record that is wanted through the segments of a
// path, the newest first, for positions as a rule are recent.
type search struct {
	r     *Reader
	found beginning // the oldest hit so far
	end   beginning // behind what the active file had when it was searched
	// passed are files older than the hit that cannot be read.
	passed []*Problem
}

// look is how one segment is searched. It reports whether older ones cannot
// have what is wanted.
type look func(s *source, size int64) (index.Found, bool, error)

// run searches until look says it is enough.
func (h *search) run(look look) error {
	s, err := h.r.active()
	if err != nil {
		return err
	}
	number := h.r.number(s)
	enough, err := h.visit(s, look)
	if enough || err != nil {
		return err
	}
	list, err := segment.List(h.r.path)
	if err != nil {
		return err
	}
	for i := len(list) - 1; i >= 0 && !enough; i-- {
		if list[i].Number >= number {
			continue
		}
		s, err := h.r.join(list[i])
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed, and so are those before it
		}
		if p := unreadable(list[i], err); p != nil {
			h.passed = append(h.passed, p)
			continue
		}
		if err != nil {
			return err
		}
		if enough, err = h.visit(s, look); err != nil {
			return err
		}
	}
	return nil
}

// visit searches one segment and keeps its part in it where it is needed.
func (h *search) visit(s *source, look look) (bool, error) {
	defer h.r.leave(s)
	size, change, err := s.examine()
	if err != nil {
		return false, err
	}
	if change != nil {
		return false, &Problem{Kind: change.kind, Path: s.file.Path, Reason: change.reason}
	}
	var found index.Found
	var enough bool
	err = s.steady(size, func(size int64) error {
		found, enough, err = look(s, size)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("search %s: %w", s.file.Path, err)
	}
	keep := &h.found
	if !found.OK {
		if keep = &h.end; keep.src != nil {
			return enough, nil
		}
	} else {
		h.passed = nil // the cursor comes to them
	}
	h.drop(keep)
	h.r.share(s)
	*keep = beginning{src: s, off: found.Offset}
	return enough, nil
}

// drop gives up a part that is not needed.
func (h *search) drop(b *beginning) {
	if b.src != nil {
		h.r.leave(b.src)
		*b = beginning{}
	}
}

// share takes one more part in a source.
func (r *Reader) share(s *source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.refs++
}

// sequence begins at the first record of a key with a sequence or a later one.
func (r *Reader) sequence(m Match, seq uint64) (beginning, error) {
	switch {
	case !m.Exact():
		return beginning{}, &PositionError{Path: r.path, Key: m.String(), Sequence: seq, Reason: "sequences are counted per key: name one key, or start at a time"}
	case seq <= 1:
		return r.find(m, Start{})
	}
	var last uint64
	h := &search{r: r}
	err := h.run(func(s *source, size int64) (index.Found, bool, error) {
		found, err := index.Sequence(s.file, size, s.header, m.text, seq)
		if err != nil || !found.OK {
			last = max(last, found.Last)
			return found, found.Last > 0, err
		}
		return found, found.Sequence == seq, nil
	})
	return h.beginning(err, filter{sequence: seq}, func() error {
		if seq == last+1 {
			return nil
		}
		return &PositionError{Path: r.path, Key: m.text, Sequence: seq, Last: last}
	})
}

// time begins at the first record later than a time.
func (r *Reader) time(m Match, ms int64) (beginning, error) {
	h := &search{r: r}
	err := h.run(func(s *source, size int64) (index.Found, bool, error) {
		found, err := index.Time(s.file, size, s.header, func(key []byte) bool { return m.Has(string(key)) }, ms)
		return found, s.header.Created <= ms, err
	})
	return h.beginning(err, filter{time: ms, timed: true}, func() error { return nil })
}

// beginning returns what was found, else the end if that may be waited at.
func (h *search) beginning(err error, from filter, beyond func() error) (beginning, error) {
	if err == nil && h.found.src == nil {
		err = beyond()
	}
	if err != nil {
		h.drop(&h.found)
		h.drop(&h.end)
		return beginning{}, err
	}
	b := h.found
	if b.src != nil {
		h.drop(&h.end)
	} else {
		b = h.end
		f, err := h.r.at(context.Background(), b.src, b.off, anew)
		if err != nil {
			h.r.leave(b.src)
			return beginning{}, err
		}
		// It ends nothing, as with a start at the end.
		b.mark = f.standing == marked
	}
	b.from, b.problems = from, h.passed
	return b, nil
}
