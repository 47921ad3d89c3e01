// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"sync"
	"time"
)

// Cursor delivers the records that match, in the order of the file. One
// goroutine at a time calls Next or Seek; Place, Read and Close may be called
// beside it. Seek, and Place, wait for a Next that is under way: cancel its
// context first.
type Cursor struct {
	r      *Reader
	match  Match
	replay bool
	closed chan struct{}
	once   sync.Once

	mu       sync.Mutex
	src      *source // nil while there is no file to read
	off      int64   // a boundary: what is read next begins there or later
	created  int64   // of src, and of the last one while there is none
	from     filter
	quiet    bool  // a replay that has caught up
	ended    int64 // offset of an end mark that has been told of, or -1
	told     int64 // boundary of damage that has been told of, or -1
	unrest   unrest
	absence  absence
	pending  []*Problem // to be told first
	keys     []bool     // of a chunk, that match
	records  []Record
	problems []*Problem
	given    []*chunk // with payloads in the last batch
	passed   []*chunk // that the last batch ends behind
}

// unrest is an end of file that may be in the making.
type unrest struct {
	off, size int64
	until     time.Time
}

// absence is that no file stands at the path.
type absence struct {
	until time.Time // then it is told
	told  bool
}

// filter holds back what comes before the start.
type filter struct {
	sequence uint64 // at least
	time     int64  // later than this, if timed
	timed    bool
	floor    int64 // offset at least, in the segment created then
	created  int64
}

// passes reports whether a record is at or behind the start. The first that
// is ends the filtering.
func (f *filter) passes(s *source, off int64, e *entry) bool {
	if *f == (filter{}) {
		return true
	}
	if e.sequence < f.sequence || f.timed && e.time <= f.time ||
		f.floor > 0 && s.header.Created == f.created && off+int64(e.at) < f.floor {
		return false
	}
	*f = filter{}
	return true
}

// Next returns what comes next: records, at most most of them and hardly more
// than bytes of payload, or a problem, or that the end was reached. It waits
// until there is one of these. 0 is no limit.
func (c *Cursor) Next(ctx context.Context, most int, bytes int64) (Batch, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	clear(c.records) // payloads given out earlier are not kept for this
	clear(c.problems)
	b := Batch{Records: c.records[:0], Problems: c.problems[:0]}
	for b.empty() {
		if err := c.usable(ctx); err != nil {
			return Batch{}, err
		}
		if len(c.pending) > 0 {
			b.Problems = append(b.Problems, c.pending...)
			c.pending = nil
			break
		}
		if err := c.step(ctx, limits{most, bytes}, &b); err != nil {
			return Batch{}, err
		}
	}
	c.further(ctx, limits{most, bytes}, &b)
	c.records, c.problems = b.Records, b.Problems
	if c.replay && len(b.Records) > 0 && len(b.Problems) == 0 {
		b.CaughtUp = c.caughtUp(ctx)
	}
	return b, nil
}

// further fills a batch with what is known to stand behind its records.
func (c *Cursor) further(ctx context.Context, l limits, b *Batch) {
	for n := len(b.Records); n > 0 && n < l.records && len(b.Problems) == 0 && c.far(); n = len(b.Records) {
		rest := limits{l.records - n, l.bytes}
		if l.bytes > 0 {
			for i := range b.Records {
				rest.bytes -= int64(len(b.Records[i].Payload))
			}
			if rest.bytes <= 0 {
				return
			}
		}
		f, err := c.r.at(ctx, c.src, c.off, c.r.watch.generation())
		if err != nil || f.chunk == nil {
			return // which the next call meets again
		}
		c.take(f.chunk, rest, b)
	}
}

// limits of a batch.
type limits struct {
	records int
	bytes   int64
}

// usable says why the cursor cannot go on.
func (c *Cursor) usable(ctx context.Context) error {
	select {
	case <-c.closed:
		return ErrClosed
	default:
		return ctx.Err()
	}
}

// step goes one step on: over a chunk, over the end of a file, or to the next
// change.
func (c *Cursor) step(ctx context.Context, l limits, b *Batch) error {
	if c.quiet {
		return c.sleep(ctx)
	}
	gen := c.r.watch.generation()
	if c.src == nil {
		return c.rejoin(ctx, gen, b)
	}
	look := gen
	if c.replay {
		look = anew // what was written before the call is there, heard of or not
	}
	f, err := c.r.at(ctx, c.src, c.off, look)
	switch {
	case err != nil:
		return err
	case f.chunk != nil:
		c.take(f.chunk, l, b)
		return nil
	case f.standing == changed:
		return c.changed(&f, b)
	case f.final:
		return c.advance(ctx, gen, &f, b)
	}
	sealed, missing, err := c.r.seal(c.src, look)
	switch {
	case sealed || err != nil:
		return err // what was written last is looked for first
	case !missing:
		c.absence = absence{}
	case !c.replay && !c.absence.told:
		return c.absent(ctx, gen, b)
	}
	return c.end(ctx, gen, &f, b)
}

// sleep waits for the end of the context or the cursor.
func (c *Cursor) sleep(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		return ErrClosed
	}
}

// Place returns where the cursor stands: what it reads next begins there or
// later.
func (c *Cursor) Place() Place {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Place{Created: c.created, Offset: c.off}
}

// Close ends a Next that is under way and all later calls with [ErrClosed].
func (c *Cursor) Close() {
	c.once.Do(func() { close(c.closed) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stand(nil, c.off)
	clear(c.passed) // others may have come to them, and this one counts no more
	c.passed = c.passed[:0]
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	if _, ok := c.r.cursors[c]; ok {
		delete(c.r.cursors, c)
		c.r.reading.Add(-1)
	}
}

// stand puts the cursor at a boundary of a source it has a part in.
func (c *Cursor) stand(s *source, off int64) {
	old := c.src
	c.src, c.off, c.told, c.ended = s, off, -1, -1
	if s != nil {
		c.created = s.header.Created
	}
	if old != nil {
		c.r.leave(old)
	}
}
