// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// together is how soon behind a write another packet is left to the writer: by
	// then others may have joined it.
	together = 50 * time.Microsecond
	// corkedMost is how much may wait for the end of a read.
	corkedMost = 64 << 10
	// kept is the largest memory for packets that is used again where less than an
	// eighth of it is.
	kept = 256 << 10
	// writeStep is the most that is written without looking at the clock: a record
	// of TLS, of which nobody knows how far it has got.
	writeStep = 16 << 10
)

// outgoing is what a link writes.
type outgoing struct {
	mu      sync.Mutex
	pending []byte // whole packets that nobody writes yet
	flight  []byte // what whoever is busy has taken of them, and not written yet
	memory  []byte // of flight
	busy    bool   // somebody writes, or the writer has been woken to
	corked  bool   // a read is being gone through: what it makes leaves together
	closing bool   // nothing more is taken
	tell    bool   // somebody has left packets to whoever writes, who then calls OnWritten

	queued  atomic.Uint64 // bytes that were ever appended
	written atomic.Uint64 // bytes that were ever written
	wake    chan struct{}

	attempt  func(fd uintptr) bool // Link.attempt, bound once
	attempts []byte                // what it writes
	n        int                   // how much it wrote
	err      error
}

// Append appends whole packets to what is to be written, by f, which must not call
// the link. It neither writes nor waits: Flush must follow. The packets have been
// handed to the operating system when Written has reached mark. It reports false,
// without calling f, where the link takes nothing more.
func (l *Link) Append(f func(dst []byte) []byte) (mark uint64, ok bool) {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	if l.out.closing {
		return 0, false
	}
	l.out.append(f)
	return l.out.queued.Load(), true
}

// Flush sees to it that what has been appended leaves, and does not wait for it.
// Where nothing has been written for a moment, it leaves before Flush returns. What is
// appended during Up, Packet and Handled leaves when they have returned.
func (l *Link) Flush() {
	l.out.mu.Lock()
	l.leave()
}

// Write is Append and Flush.
func (l *Link) Write(f func(dst []byte) []byte) (mark uint64, ok bool) {
	o := &l.out
	o.mu.Lock()
	if o.closing {
		o.mu.Unlock()
		return 0, false
	}
	o.append(f)
	mark = o.queued.Load()
	l.leave()
	return mark, true
}

// leave sees to it that what is pending is written. It is called with the lock, and
// gives it back. It reports whether it has written something itself.
func (l *Link) leave() (wrote bool) {
	o := &l.out
	switch {
	case o.busy || o.corked && len(o.pending) < corkedMost:
		o.tell = true
		o.mu.Unlock()
		return false
	case len(o.pending) == 0:
		o.mu.Unlock()
		return false
	}
	o.busy = true
	if l.raw == nil || o.corked || o.closing || l.since()-l.lastWrite.Load() < int64(together) {
		o.wakeWriter()
		o.mu.Unlock()
		return false
	}
	o.take()
	b := o.flight
	l.running.Add(1) // Down waits for it: nothing is closing, or it would not begin
	o.mu.Unlock()
	n, err := l.try(b)
	if err != nil {
		l.lose(err)
	}
	o.mu.Lock()
	if o.flight = o.flight[n:]; len(o.flight) == 0 && len(o.pending) == 0 && !o.closing && !o.tell {
		o.busy = false
	} else {
		o.wakeWriter()
	}
	o.mu.Unlock()
	l.running.Done()
	return n > 0
}

// cork keeps what is written until uncork.
func (l *Link) cork() {
	l.out.mu.Lock()
	l.out.corked = !l.out.closing
	l.out.mu.Unlock()
}

// uncork lets it leave, and says so here: no lock is held.
func (l *Link) uncork() {
	l.out.mu.Lock()
	l.out.corked, l.out.tell = false, false
	if l.leave() && l.onWritten != nil {
		l.onWritten()
	}
}

// append appends packets, with the lock held.
func (o *outgoing) append(f func(dst []byte) []byte) {
	before := len(o.pending)
	o.pending = f(o.pending)
	o.queued.Add(uint64(len(o.pending) - before))
}

// take moves what is pending to what is in flight, with the lock held.
func (o *outgoing) take() {
	memory := o.memory[:0]
	if cap(memory) > kept && len(o.pending) < cap(memory)/8 {
		memory = nil
	}
	o.flight, o.memory, o.pending = o.pending, o.pending, memory
}

func (o *outgoing) wakeWriter() {
	select {
	case o.wake <- struct{}{}:
	default: // it has not looked since
	}
}

// Waiting returns how many bytes have not been written yet.
func (l *Link) Waiting() int {
	written := l.out.written.Load() // first: it never passes what is queued
	return int(l.out.queued.Load() - written)
}

// Written returns the mark up to which bytes have been handed to the operating
// system. It does not change any more when Down is called.
func (l *Link) Written() uint64 { return l.out.written.Load() }

// OnWritten makes f be called when Written has changed, but for what Write and
// Flush have written before they returned: whoever waits for a mark looks at
// Written behind them first. f is called by the link's reader or writer without a
// lock, never behind Down. It must not block, and may call the link. It is set in
// Up, or never.
func (l *Link) OnWritten(f func()) { l.onWritten = f }

// wrote notes that n bytes more are written.
func (l *Link) wrote(n int) {
	if n > 0 {
		l.out.written.Add(uint64(n))
		l.lastWrite.Store(l.since())
	}
}

// writing is the link's writer: it writes what nobody else does, until the link
// has ended.
func (l *Link) writing() {
	for {
		select {
		case <-l.out.wake:
		case <-l.done:
			return
		}
		for more := true; more; {
			more = l.writeSome()
			if l.onWritten != nil {
				l.onWritten()
			}
		}
	}
}

// writeSome writes all that is there now. It reports false when there is nothing,
// or the link has been lost.
func (l *Link) writeSome() bool {
	o := &l.out
	o.mu.Lock()
	if len(o.flight) == 0 {
		if len(o.pending) == 0 {
			o.busy, o.tell = false, false
			closing := o.closing
			o.mu.Unlock()
			if closing {
				l.halfClose()
			}
			return false
		}
		o.take()
	}
	b := o.flight
	o.mu.Unlock()
	n, err := l.put(b)
	o.mu.Lock()
	o.flight = o.flight[n:]
	o.mu.Unlock()
	if err != nil {
		l.lose(err)
		return false
	}
	return true
}

// halfClose says that nothing more comes, so that the server closes when it has
// read everything: where we did, what it has not read yet might be lost.
func (l *Link) halfClose() {
	c, ok := l.nc.(interface{ CloseWrite() error })
	if !ok {
		l.cut()
		return
	}
	l.out.mu.Lock()
	if l.linger == nil {
		l.linger = time.AfterFunc(l.times.linger, l.cut)
	}
	l.out.mu.Unlock()
	_ = c.CloseWrite()
}

// put writes all of b. The server may be slow, but it must take something within
// the limit.
func (l *Link) put(b []byte) (n int, err error) {
	if l.raw != nil {
		n, err = l.try(b)
		if err != nil || n == len(b) {
			return n, err
		}
	}
	for n < len(b) {
		_ = l.nc.SetWriteDeadline(time.Now().Add(l.times.stall))
		k, err := l.nc.Write(b[n:min(len(b), n+writeStep)])
		n += k
		l.wrote(k)
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && k > 0 && l.raw != nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			return n, fmt.Errorf("the server has read nothing for %v: %w", l.times.stall, err)
		default:
			return n, err
		}
	}
	_ = l.nc.SetWriteDeadline(time.Time{})
	return n, nil
}

// try writes as much of b as the connection takes without waiting. Only who is
// busy calls it.
func (l *Link) try(b []byte) (int, error) {
	o := &l.out
	o.attempts, o.n, o.err = b, 0, nil
	if err := l.raw.Write(o.attempt); err != nil {
		return 0, err
	}
	o.attempts = nil
	l.wrote(o.n)
	return o.n, o.err
}

// attempt writes once, and never asks to wait.
func (l *Link) attempt(fd uintptr) bool {
	o := &l.out
	for {
		n, err := syscall.Write(int(fd), o.attempts)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
		case err != nil:
			o.err = &net.OpError{Op: "write", Err: err}
		default:
			o.n = n
		}
		return true
	}
}
