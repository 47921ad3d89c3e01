// SPDX-License-Identifier: Apache-2.0

package slab

import (
	"errors"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/plugins/internal/poison"
)

// A Buffer reads what one connection sends into pooled memory. One goroutine
// uses it at a time.
//
// Fill reads what is there, Bytes shows it, Take hands the first of it out. What
// was handed out is good until Spent, or belongs to the loan of Lend.
type Buffer struct {
	source io.Reader
	raw    syscall.RawConn // nil = the source cannot be waited for

	slab  *slab // nil = nothing is held
	start int   // of what is not taken yet
	end   int   // of what was read
	mark  int   // start of what was handed out and is neither lent nor spent
	known int   // bytes that are needed from start on, as far as is known
	size  int   // of the next slab
	most  int   // of it

	claim Claim // nil = none

	handed []piece // the same, in slabs that are full

	read  func(fd uintptr) bool // readFD, bound once
	ready func(fd uintptr) bool // readable, bound once
	n     int                   // what it read
	err   error                 // and its error
}

// A Claim is asked before memory beyond the pooled sizes is taken.
type Claim interface {
	Take(n int64) error // n bytes in all, waits for them
	Drop()              // none is in use any more
	Fills(on bool)      // whether the buffer waits for its peer
}

// noClaim lets everything be taken.
type noClaim struct{}

func (noClaim) Take(int64) error { return nil }
func (noClaim) Drop()            {}
func (noClaim) Fills(bool)       {}

// NewBuffer returns a buffer of source. Where that is a TCP or Unix connection,
// nothing is held while it waits.
func NewBuffer(source io.Reader) *Buffer {
	b := &Buffer{source: source, size: Min, most: Max, claim: noClaim{}}
	b.read, b.ready = b.readFD, readable
	if c, ok := source.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			b.raw = raw
		}
	}
	return b
}

// Most bounds the memory that is read into from now on, by default Max. At least
// Min is used, and what Need says.
func (b *Buffer) Most(n int) {
	b.most = min(max(n, Min), Max)
	b.size = min(b.size, b.most)
}

// Share makes the buffer ask a claim, from now on. It is called where nothing is
// read yet, or nothing large.
func (b *Buffer) Share(c Claim) {
	b.claim.Drop()
	b.claim = c
}

// Buffered returns how many bytes were read and not taken yet.
func (b *Buffer) Buffered() int { return b.end - b.start }

// Bytes is what was read and not taken yet.
func (b *Buffer) Bytes() []byte {
	if b.slab == nil {
		return nil
	}
	return b.slab.data[b.start:b.end]
}

// Take hands out the first n of Bytes. Nothing is known then of what is behind
// them.
func (b *Buffer) Take(n int) {
	b.start += n
	b.known = 0
}

// Need says how many bytes have to stand in Bytes before something can be taken.
func (b *Buffer) Need(n int) { b.known = n }

// Holds reports whether the buffer holds memory.
func (b *Buffer) Holds() bool { return b.slab != nil }

// Wait waits until something can be read or the connection has ended, without
// holding memory unless something that is not taken is in it. Deadlines of the
// connection count, and the buffer is as before after one. Where the source
// cannot be waited for, it returns at once.
func (b *Buffer) Wait() error {
	if b.raw == nil {
		return nil
	}
	b.idle()
	return b.raw.Read(b.ready)
}

// Fill waits until something can be read, and reads it. It is called when Bytes
// has not all that is needed. The error is io.EOF where the peer ended and
// nothing is left to be taken, io.ErrUnexpectedEOF where something is,
// net.ErrClosed, or what the connection says; deadlines of the connection count.
func (b *Buffer) Fill() error {
	if b.raw == nil || b.Buffered() > 0 { // not in readFD, where closing would wait for it
		if err := b.reserve(); err != nil {
			return err
		}
	}
	b.claim.Fills(true)
	defer b.claim.Fills(false)
	if b.raw == nil {
		b.n, b.err = b.source.Read(b.slab.data[b.end:])
	} else if err := b.raw.Read(b.read); err != nil {
		b.n, b.err = 0, err
	}
	n, err := b.n, b.err
	b.n, b.err = 0, nil
	if n > 0 {
		b.filled(n)
		return nil
	}
	if errors.Is(err, io.EOF) && b.Buffered() > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readable reports whether a read would not wait.
func readable(fd uintptr) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds[:], 0)
		if !errors.Is(err, unix.EINTR) {
			return n != 0 || err != nil
		}
	}
}

// readFD reads once. It reports false where there is nothing to read, so that
// the caller waits; memory without a byte of the peer in it is not held then.
func (b *Buffer) readFD(fd uintptr) bool {
	if b.err = b.reserve(); b.err != nil { // there is room: Fill has seen to it
		return true
	}
	for {
		n, err := syscall.Read(int(fd), b.slab.data[b.end:])
		switch {
		case n > 0:
			b.n, b.err = n, nil
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			b.idle()
			return false
		case err != nil:
			b.n, b.err = 0, &net.OpError{Op: "read", Err: err}
		default:
			b.n, b.err = 0, io.EOF
		}
		return true
	}
}

// filled notes n bytes more, and how much to read the next time.
func (b *Buffer) filled(n int) {
	room := len(b.slab.data) - b.end
	b.end += n
	switch {
	case n == room:
		b.size = min(b.size*Step, b.most)
	case n < b.size/(2*Step):
		b.size = max(b.size/Step, Min)
	}
}

// Lend makes l keep the memory of everything that was handed out since the last
// Lend or Spent. What l has kept already stays with it.
func (b *Buffer) Lend(l *Loan) {
	l.pieces = append(l.pieces, b.handed...)
	clear(b.handed)
	b.handed = b.handed[:0]
	if b.slab == nil || b.mark == b.start {
		return
	}
	b.slab.refs.Add(1)
	l.pieces = append(l.pieces, piece{b.slab, b.mark, b.start})
	b.mark = b.start
}

// Spent says that nothing that was handed out since the last Lend is used any
// more.
func (b *Buffer) Spent() {
	for i := range b.handed {
		b.handed[i].release()
	}
	clear(b.handed)
	b.handed = b.handed[:0]
	if b.slab != nil {
		poison.Bytes(b.slab.data[b.mark:b.start])
	}
	b.mark = b.start
}

// Close gives the memory back that the buffer itself holds, also what was handed
// out and not lent. The source is not closed.
func (b *Buffer) Close() {
	b.Spent()
	if b.slab != nil {
		b.retire()
	}
	b.claim.Drop()
	b.start, b.end, b.mark, b.known = 0, 0, 0, 0
}
