// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// polled is a descriptor that is waited for with poll(2). Go's own poller is no
// way to do it: it wants O_NONBLOCK, which is a flag of the description and so
// would change the shell's and the neighbours' end as well.
type polled struct {
	fd    int
	wakes *wakePipe
	use   sync.Mutex // held while fd is in use; close waits for it

	once   sync.Once
	closed chan struct{}
	err    error // of the one close
}

func newPolled(fd int) (*polled, error) {
	wakes, err := newWakePipe()
	if err != nil {
		return nil, fmt.Errorf("make wake pipe: %w", err)
	}
	return &polled{fd: fd, wakes: wakes, closed: make(chan struct{})}, nil
}

// wait returns when a call for events would not block, or fails, or ctx or the
// descriptor ends. A descriptor that poll(2) cannot serve counts as ready: the
// call itself then tells what is wrong.
func (p *polled) wait(ctx context.Context, events int16) error {
	if err := p.ended(ctx); err != nil {
		return err
	}
	fds := [2]unix.PollFd{
		{Fd: int32(p.fd), Events: events},
		{Fd: int32(p.wakes.fd), Events: unix.POLLIN},
	}
	if n, err := unix.Poll(fds[:1], 0); err == nil && n > 0 {
		return nil
	}
	stop := context.AfterFunc(ctx, p.wakes.wake)
	defer stop()
	for {
		if err := p.ended(ctx); err != nil {
			return err
		}
		if _, err := unix.Poll(fds[:], -1); err != nil {
			if again(err) {
				continue
			}
			return fmt.Errorf("poll: %w", err)
		}
		if fds[1].Revents != 0 {
			p.wakes.drain() // perhaps of a wait that is over; ended tells
		} else if fds[0].Revents != 0 {
			return nil
		}
	}
}

func (p *polled) ended(ctx context.Context) error {
	select {
	case <-p.closed:
		return os.ErrClosed
	default:
		return ctx.Err()
	}
}

// close ends a wait under way, then closes what there is. A late wake finds
// the pipe closed and does nothing.
func (p *polled) close() error {
	p.once.Do(func() {
		close(p.closed)
		p.wakes.wake()
		p.use.Lock()
		defer p.use.Unlock()
		p.err = unix.Close(p.fd)
		p.wakes.close()
	})
	return p.err
}

// wakePipe ends a poll(2) from another goroutine.
type wakePipe struct {
	r, w    *os.File
	fd      int         // of r
	pending atomic.Bool // a byte is in it; one is enough, and more could fill it
}

func newWakePipe() (*wakePipe, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &wakePipe{r: r, w: w, fd: int(r.Fd())}, nil
}

func (w *wakePipe) wake() {
	if w.pending.CompareAndSwap(false, true) {
		_, _ = w.w.Write([]byte{0}) // fails after close, when nobody waits
	}
}

func (w *wakePipe) drain() {
	var b [1]byte
	_, _ = w.r.Read(b[:])
	w.pending.Store(false)
}

func (w *wakePipe) close() {
	_ = w.r.Close()
	_ = w.w.Close()
}
