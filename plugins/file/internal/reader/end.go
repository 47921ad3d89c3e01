// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/index"
)

// settle is how long bytes at the end of a file that are no whole record must
// stay as they are before they are called torn or damaged: a write may be
// under way.
const settle = 50 * time.Millisecond

// removed is for how long no file must stand at the path before that is told: a
// rotation is quicker.
const removed = time.Second

// caughtUp reports whether nothing at all is behind the records that a replay
// is about to give out: then they are told to be the last ones, and what is
// written because of them is not read by it any more.
func (c *Cursor) caughtUp(ctx context.Context) bool {
	if c.far() {
		return false
	}
	f, err := c.r.at(ctx, c.src, c.off, anew)
	if err != nil || f.final || f.standing != nothing && f.standing != marked {
		return false
	}
	sealed, _, err := c.r.seal(c.src, anew)
	c.quiet = err == nil && !sealed
	return c.quiet
}

// far reports whether more than an end mark is known to stand behind the
// cursor.
func (c *Cursor) far() bool {
	c.r.cache.mu.Lock()
	defer c.r.cache.mu.Unlock()
	return c.src.size-c.off > int64(format.EndLen)
}

// end is at the end of the active file, where nothing whole stands.
func (c *Cursor) end(ctx context.Context, gen uint64, f *found, b *Batch) error {
	if f.standing == damaged && c.told != c.off || f.standing == partial && c.replay {
		if wait, err := c.unsettled(ctx, gen, f); wait || err != nil {
			return err
		}
	}
	switch {
	case f.standing == damaged, f.standing == partial && c.replay:
		if err := c.tell(f, b); err != nil {
			return err
		}
	case f.standing == marked && !c.replay && c.ended != c.off:
		c.ended = c.off
		b.Ended = true
	}
	if c.replay {
		b.CaughtUp, c.quiet = true, true
	}
	if b.empty() {
		return c.r.watch.wait(ctx, c.closed, gen)
	}
	return nil
}

// unsettled waits for a change of what stands at the end of the file, and
// reports false when there has been none for long enough.
func (c *Cursor) unsettled(ctx context.Context, gen uint64, f *found) (bool, error) {
	now := time.Now()
	if u := &c.unrest; u.off != c.off || u.size != f.size {
		*u = unrest{off: c.off, size: f.size, until: now.Add(c.r.settle)}
	}
	if !now.Before(c.unrest.until) {
		return false, nil
	}
	return true, c.pause(ctx, gen, c.unrest.until)
}

// pause waits for a change, but not for longer than until: then the next look
// is a new one.
func (c *Cursor) pause(ctx context.Context, gen uint64, until time.Time) error {
	short, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	err := c.r.watch.wait(short, c.closed, gen)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		c.r.watch.wake()
		return nil
	}
	return err
}

// tell adds the problem of what stands at the end of a file, once. What a
// writer leaves there and writes over again is none for those who wait.
func (c *Cursor) tell(f *found, b *Batch) error {
	if c.told == c.off || f.problem == nil {
		return nil
	}
	damage, err := index.Torn(c.src.file, f.size, c.src.header, c.off)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil // cut off since
	}
	if err != nil {
		return fmt.Errorf("look at the end of %s: %w", c.src.file.Path, err)
	}
	last := c.replay || f.final
	if damage == nil && !last {
		return nil
	}
	p := *f.problem
	switch {
	case damage == nil:
		p.Kind = TornTail
	case f.standing == partial:
		p.Kind, p.Reason = Damage, damage.Reason
	}
	if last {
		p.Skipped = f.size - p.Offset
	}
	c.told = c.off
	b.Problems = append(b.Problems, &p)
	return nil
}
