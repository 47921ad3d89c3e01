// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"errors"
	"io"
	"math"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/plugins/internal/poison"
)

// MaxFrames is the most frames of one message: three are read, two more may
// stand before them, and the rest is skipped.
const MaxFrames = 1024

// A Reader reads messages and commands of one connection into pooled memory.
// One goroutine uses it at a time.
//
// Fill reads what is there, Next takes messages off it until it reports false.
// What Next handed out is good until Spent, or belongs to the loan of Lend.
type Reader struct {
	source     io.Reader
	raw        syscall.RawConn // nil = the source cannot be waited for
	maxMessage int64

	slab  *slab // nil = nothing is held
	start int   // of what is not taken yet
	end   int   // of what was read
	mark  int   // start of what was handed out and is neither lent nor spent
	size  int   // of the next slab
	most  int   // of it

	claim *claim // of the budget, where one is shared

	handed []piece // the same, in slabs that are full
	part   part    // of the message at start

	read  func(fd uintptr) bool // readFD, bound once
	ready func(fd uintptr) bool // readable, bound once
	n     int                   // what it read
	err   error                 // and its error
}

// NewReader returns a reader of nc behind its handshake. Messages of more than
// maxMessage bytes are refused. Where nc is a TCP or Unix connection, nothing
// is held while it waits.
func NewReader(nc io.Reader, maxMessage int64) *Reader {
	r := &Reader{source: nc, maxMessage: min(maxMessage, math.MaxInt-1<<20), size: minSlab, most: maxSlab}
	r.read, r.ready = r.readFD, readable
	if c, ok := nc.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			r.raw = raw
		}
	}
	return r
}

// Most bounds the memory that is read into from now on, by default 256 KiB. At
// least 4 KiB are used, and what a message needs.
func (r *Reader) Most(n int) {
	r.most = min(max(n, minSlab), maxSlab)
	r.size = min(r.size, r.most)
}

// Share makes the reader take the memory of large messages out of a budget that it
// shares, from now on. It is called where nothing is read yet, or no large
// message.
func (r *Reader) Share(s Sharing) {
	r.claim.drop()
	r.claim = &claim{Sharing: s}
}

// Buffered returns how many bytes were read and not taken yet.
func (r *Reader) Buffered() int { return r.end - r.start }

// Wait waits until something can be read or the connection has ended, without
// holding memory unless a part of a message is in it. Deadlines of the
// connection count, and the reader is as before after one. Where the source
// cannot be waited for, it returns at once.
func (r *Reader) Wait() error {
	if r.raw == nil {
		return nil
	}
	r.idle()
	return r.raw.Read(r.ready)
}

// Fill waits until something can be read, and reads it. It is called after Next
// has reported false. The error is io.EOF where the peer ended behind a whole
// message, io.ErrUnexpectedEOF within one, net.ErrClosed, or what the
// connection says; deadlines of the connection count. Where the budget of Share is
// used up it waits for that first.
func (r *Reader) Fill() error {
	if r.raw == nil || r.Buffered() > 0 { // not in readFD, where closing would wait for it
		if err := r.reserve(); err != nil {
			return err
		}
	}
	r.claim.fills(true)
	defer r.claim.fills(false)
	if r.raw == nil {
		r.n, r.err = r.source.Read(r.slab.data[r.end:])
	} else if err := r.raw.Read(r.read); err != nil {
		r.n, r.err = 0, err
	}
	n, err := r.n, r.err
	r.n, r.err = 0, nil
	if n > 0 {
		r.filled(n)
		return nil
	}
	if errors.Is(err, io.EOF) && r.Buffered() > 0 {
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
func (r *Reader) readFD(fd uintptr) bool {
	if r.err = r.reserve(); r.err != nil { // there is room: Fill has seen to it
		return true
	}
	for {
		n, err := syscall.Read(int(fd), r.slab.data[r.end:])
		switch {
		case n > 0:
			r.n, r.err = n, nil
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			r.idle()
			return false
		case err != nil:
			r.n, r.err = 0, &net.OpError{Op: "read", Err: err}
		default:
			r.n, r.err = 0, io.EOF
		}
		return true
	}
}

// filled notes n bytes more, and how much to read the next time.
func (r *Reader) filled(n int) {
	room := len(r.slab.data) - r.end
	r.end += n
	switch {
	case n == room:
		r.size = min(r.size*slabStep, r.most)
	case n < r.size/(2*slabStep):
		r.size = max(r.size/slabStep, minSlab)
	}
}

// reserve makes room for a read behind what was read.
func (r *Reader) reserve() error {
	if r.slab == nil {
		r.begin(takeSlab(r.size))
		return nil
	}
	alone := r.mark == r.start && r.slab.refs.Load() == 1
	if alone && r.start > 0 {
		r.end = copy(r.slab.data, r.slab.data[r.start:r.end])
		r.start, r.mark = 0, 0
	}
	if r.fits(alone) {
		return nil
	}
	return r.move()
}

// fits reports whether the next read goes into the slab as it is.
func (r *Reader) fits(alone bool) bool {
	size, part := len(r.slab.data), r.Buffered()
	room := size - r.end
	switch {
	case size > maxSlab && r.part.known <= maxSlab:
		return false // its large message has gone
	case alone && size < r.size && part <= size/slabStep:
		return false // the peer sends more at a time
	default:
		return room >= size/slabStep || r.missing() <= room && part > size/slabStep
	}
}

// missing is how many bytes of the message at start are still to come, as far
// as is known: at least one.
func (r *Reader) missing() int { return max(r.part.known-r.Buffered(), 1) }

// moveStep is the share by which a part grows at least when it is moved: small
// frames behind a large one do not move that each time.
const moveStep = 8

// move goes on in a new slab, to which the part of a message at the end is
// taken along. What is announced alone takes no memory: a slab beyond the
// pooled sizes is at most slabStep times as large as what has arrived.
func (r *Reader) move() error {
	part := r.slab.data[r.start:r.end]
	more := min(r.missing(), (slabStep-1)*max(len(part), minSlab))
	size := max(r.size, len(part)+max(more, len(part)/moveStep))
	if size <= maxSlab {
		r.claim.drop()
	} else if r.claim != nil {
		if err := r.claim.take(int64(size)); err != nil {
			return err
		}
	}
	s := takeSlab(size)
	n := copy(s.data, part)
	r.retire()
	r.begin(s)
	r.end = n
	return nil
}

// begin goes on in s.
func (r *Reader) begin(s *slab) {
	r.slab, r.start, r.end, r.mark = s, 0, 0, 0
}

// retire lets go of the slab, but for what was handed out of it.
func (r *Reader) retire() {
	if r.mark < r.start {
		r.handed = append(r.handed, piece{r.slab, r.mark, r.start})
	} else {
		r.slab.drop()
	}
	r.slab = nil
}

// idle lets go of a slab in which nothing waits to be taken.
func (r *Reader) idle() {
	if r.slab != nil && r.start == r.end {
		r.retire()
		r.claim.drop()
		r.start, r.end, r.mark = 0, 0, 0
	}
}

// Lend makes l keep the memory of everything that Next handed out since the
// last Lend or Spent. What l has kept already stays with it.
func (r *Reader) Lend(l *Loan) {
	l.pieces = append(l.pieces, r.handed...)
	clear(r.handed)
	r.handed = r.handed[:0]
	if r.slab == nil || r.mark == r.start {
		return
	}
	r.slab.refs.Add(1)
	l.pieces = append(l.pieces, piece{r.slab, r.mark, r.start})
	r.mark = r.start
}

// Spent says that nothing that Next handed out since the last Lend is used any
// more.
func (r *Reader) Spent() {
	for i := range r.handed {
		r.handed[i].release()
	}
	clear(r.handed)
	r.handed = r.handed[:0]
	if r.slab != nil {
		poison.Bytes(r.slab.data[r.mark:r.start])
	}
	r.mark = r.start
}

// Close gives the memory back that the reader itself holds, also what was
// handed out and not lent. The connection is not closed.
func (r *Reader) Close() {
	r.Spent()
	if r.slab != nil {
		r.retire()
	}
	r.claim.drop()
	r.start, r.end, r.mark, r.part = 0, 0, 0, part{}
}
