// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// ErrOver says that a subscription has come to its end: nothing is read any more.
var ErrOver = errors.New("subscription has come to its end")

// seeking is a seek of a generation until it is answered. At most one is under
// way. All of it is guarded by the lane's lock, but that done is closed.
type seeking struct {
	to   *transportpb.Seek
	sent bool
	part bool          // refused, and some scopes may have moved
	told bool          // its caller knows, or does not wait any more
	err  error         // what the caller is told
	done chan struct{} // closed when it is told
}

// Seek moves the attached generation and waits for its answer. While its caller
// waits nothing is begun. Behind the answer everything that had been delivered is
// void: what no handler has begun is not begun any more, and what one has begun
// ends as any void delivery does. A refusal changes nothing.
//
// Seeks are carried out one after the other. maybe says of an error that the
// position may have moved all the same. It fails with ErrDown without a
// generation, before Grant and during a stop, and with ErrOver behind the end.
func (l *Lane) Seek(ctx context.Context, to *transportpb.Seek) (maybe bool, err error) {
	s := &seeking{to: to, done: make(chan struct{})}
	var refused error
	if err := l.wait(ctx, func() bool {
		var begun bool
		begun, refused = l.beginSeek(s)
		return begun || refused != nil
	}); err != nil {
		return false, err
	}
	if refused != nil {
		return false, refused
	}
	select {
	case <-s.done:
	case <-ctx.Done():
	}
	l.mu.Lock()
	if !s.told {
		l.tellSeek(s, ctx.Err())
	}
	maybe, err = s.sent && (s.part || !errors.As(s.err, new(*core.Fault))), s.err
	l.mu.Unlock()
	l.changed()
	return maybe && err != nil, err
}

// beginSeek has s sent, unless another one is under way. l.mu is held.
func (l *Lane) beginSeek(s *seeking) (begun bool, err error) {
	g := l.now
	switch {
	case l.stopping, l.closed, !l.granted, g == nil && !l.ended, l.ended && l.endFault != nil:
		return false, ErrDown
	case l.ended, g.ended, g.half:
		return false, ErrOver
	case g.seek != nil:
		return false, nil
	}
	g.seek, l.seeking = s, s
	signal(g.wake)
	return true, nil
}

// tellSeek tells s's caller, and lets deliveries be begun. One that was not sent
// is taken back. l.mu is held.
func (l *Lane) tellSeek(s *seeking, err error) {
	if s == nil || s.told {
		return
	}
	s.told, s.err = true, err
	close(s.done)
	if l.seeking == s {
		l.seeking = nil
		l.rouse()
	}
	if g := l.now; g != nil && g.seek == s && !s.sent {
		g.seek = nil
	}
}

// unseekable is why a subscription that has ended cannot be moved. l.mu is held.
func (l *Lane) unseekable() error {
	if l.endFault != nil {
		return ErrDown // it may be opened again
	}
	return ErrOver
}

// toSeek takes the seek that is to be sent, nil = none. l.mu is held.
func (g *generation) toSeek() *transportpb.Seek {
	if g.seek == nil || g.seek.sent || g.half || g.ended {
		return nil
	}
	g.seek.sent = true
	return g.seek.to
}

// sought takes the answer to a seek.
func (g *generation) sought(a *transportpb.Sought) error {
	l := g.l
	var told []news
	l.mu.Lock()
	s := g.seek
	switch {
	case g.lost:
		l.mu.Unlock()
		return nil
	case s == nil || !s.sent:
		l.mu.Unlock()
		return g.breach("answered a seek that nobody has asked for")
	}
	if f := convert.ToFault(a.GetFault()); f != nil {
		g.seek, s.part = nil, a.GetNext() > 0
		l.tellSeek(s, foreignFault(f))
		l.mu.Unlock()
		l.changed()
		return nil
	}
	if next := a.GetNext(); next == 0 || next > g.id+1 {
		l.mu.Unlock()
		return g.breach(fmt.Sprintf("answered a seek with delivery %d behind delivery %d", next, g.id))
	}
	told = g.moved(s, a.GetNext())
	l.tellSeek(s, nil)
	l.mu.Unlock()
	for _, n := range told {
		n.s.voided(n.life, n.v)
	}
	l.changed()
	return nil
}

// moved lets go of what was delivered before next. Of what a handler has, only a
// source that begins anew is sure to bring it again; a double is better than a
// loss. l.mu is held.
func (g *generation) moved(s *seeking, next uint64) (told []news) {
	l := g.l
	g.seek = nil
	if l.caughtUp {
		l.caughtUp, l.turned = false, time.Now()
	}
	old := func(f *flight) bool { return f.gen == g && f.id < next }
	l.sweepBy(func(f *flight) bool {
		if old(f) {
			f.void.Store(uint32(core.VoidReturns))
			g.uncount(f)
		}
		return l.fate()(f)
	})
	state := core.VoidGone
	if s.to.GetKind() == transportpb.PositionKind_POSITION_KIND_BEGINNING {
		state = core.VoidReturns
	}
	for f := g.live; f != nil; {
		after := f.next
		if old(f) {
			told = g.voided(f, state, told)
		}
		f = after
	}
	l.failures.clear()
	g.settled()
	return told
}
