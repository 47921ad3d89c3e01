// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"io"

	"github.com/longshore-go/longshore/pluginapi"
)

// Receive waits until there is a message and returns what is there, as far as
// there is room and up to about a frame. Own copies come first; while they fill
// the room nobody else is read, but for a small share. Peers take turns. Without
// room, and after Stop, which is io.EOF, nothing is taken. The list of deliveries
// is used again by the next call.
func (in *Intake) Receive(ctx context.Context, room pluginapi.Room) (pluginapi.Batch, error) {
	for {
		select {
		case <-in.stopping:
			return pluginapi.Batch{}, io.EOF
		default:
		}
		if ctx.Err() != nil {
			return pluginapi.Batch{}, context.Cause(ctx)
		}
		var ready chan struct{}
		if room.Messages > 0 && room.Bytes > 0 {
			if b, ok := in.take(room); ok {
				return b, nil
			}
			ready = in.wake
		}
		select {
		case <-ready:
		case <-ctx.Done():
		case <-in.stopping:
		}
	}
}

// take makes a batch of what there is, and reports whether that is anything.
func (in *Intake) take(room pluginapi.Room) (pluginapi.Batch, bool) {
	b := &in.batch
	b.begin(room)
	in.takeShare(b)
	in.takeCopies(b)
	for !b.full() {
		f, alone := in.next(b)
		if f == nil {
			break
		}
		quantum := turnBytes
		if alone {
			quantum = frameBytes
		}
		in.giveBack(f, b.from(f, quantum))
	}
	return b.end()
}

// takeShare takes one message of somebody else, where own copies have kept the
// room to themselves for long enough.
func (in *Intake) takeShare(b *batch) {
	in.mu.Lock()
	if in.own.copies.len() == 0 || !in.own.share(in.since) {
		in.mu.Unlock()
		return
	}
	f := in.pop()
	in.mu.Unlock()
	if f != nil {
		in.giveBack(f, b.from(f, 1))
	}
}

// takeCopies takes own copies.
func (in *Intake) takeCopies(b *batch) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.own.copies.len() > 0 && !b.full() {
		b.own(in.own.copies.pop())
		in.since++
	}
}

// next is who has its turn, nil = nobody has anything, and whether there is
// nobody else.
func (in *Intake) next(b *batch) (f *feed, alone bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.own.first() && !b.full() {
		b.own(in.own.published.pop())
		in.since++
	}
	if b.full() {
		return nil, false
	}
	f = in.pop()
	return f, in.ready.empty()
}

// pop takes the first one that is ready; in.mu is held.
func (in *Intake) pop() *feed {
	f := in.ready.pop()
	if f == in.own.feed {
		in.own.listed = false
	}
	return f
}

// giveBack ends a feed's turn: one that has more goes to the end of the queue,
// any other reads on.
func (in *Intake) giveBack(f *feed, more bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case f.own:
		in.listOwn()
	case more && !in.stopped:
		in.ready.push(f)
	default:
		f.turn <- struct{}{}
	}
}

// fromOwn takes messages that the service has published itself.
func (in *Intake) fromOwn(b *batch, quantum int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for until := b.frame + quantum; in.own.published.len() > 0 && !b.full() && b.frame < until; {
		b.own(in.own.published.pop())
		in.since = 0
	}
}
