// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"bytes"
	"context"
	"errors"
	"io/fs"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// changed leaves a source whose file has become another one, or shorter.
func (c *Cursor) changed(f *found, b *Batch) error {
	s := c.src
	c.r.kill(s)
	p := &Problem{Kind: f.change.kind, Path: s.file.Path, Offset: c.off, Reason: f.change.reason}
	b.Problems = append(b.Problems, p)
	c.from = filter{}
	sealed, _, err := c.r.seal(s, anew)
	if err != nil {
		return err
	}
	if sealed {
		next, missing, err := c.r.after(s, c.off)
		if err != nil {
			return err
		}
		b.Problems = append(b.Problems, missing...)
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
