// SPDX-License-Identifier: Apache-2.0

package outq

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// The bounds of what one call writes. What is in it goes on waiting for a peer
// that does not read, whatever the rest of the queue does.
const (
	writeBytes    = 64 << 10
	writeMessages = 256
)

// write is one call's worth of messages.
type write struct {
	segments [][]byte // not written yet
	all      [][]byte // the memory of segments
	control  []byte   // its first segment, where there are commands
	lead     int      // bytes of commands that are not written yet

	// Of one call.
	try func(fd uintptr) bool
	n   int
	err error
}

// init prepares the call, once: a closure for each write would be garbage.
func (w *write) init() {
	w.try = func(fd uintptr) bool {
		w.n, w.err = writeTo(int(fd), w.segments)
		return !errors.Is(w.err, unix.EAGAIN)
	}
}

// writeTo writes what the operating system takes at once.
func writeTo(fd int, segments [][]byte) (n int, err error) {
	for {
		if len(segments) == 1 {
			n, err = unix.Write(fd, segments[0])
		} else {
			n, err = unix.Writev(fd, segments)
		}
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}

// add puts an entry's bytes behind what is there.
func (w *write) add(e *entry, behind bool) {
	if len(e.head) > 0 {
		if last := len(w.segments) - 1; behind {
			w.segments[last] = w.segments[last][:len(w.segments[last])+len(e.head)]
		} else {
			w.segments = append(w.segments, e.head)
		}
	}
	if len(e.tail) > 0 {
		w.segments = append(w.segments, e.tail)
	}
}

// skip drops n bytes that are written.
func (w *write) skip(n int) {
	for n > 0 {
		if n < len(w.segments[0]) {
			w.segments[0] = w.segments[0][n:]
			return
		}
		n -= len(w.segments[0])
		w.segments[0] = nil
		w.segments = w.segments[1:]
	}
}

// run writes until the queue has ended.
func (q *Queue) run() {
	defer close(q.done)
	for q.gather() {
		for len(q.write.segments) > 0 {
			n, err := q.once()
			q.advance(n)
			if err != nil {
				q.fail(err)
				return
			}
		}
	}
}

// gather waits for something to write and collects it. It reports false at the
// end; where that is the end of Finish, the connection is half-closed.
func (q *Queue) gather() bool {
	q.mu.Lock()
	for q.waiting.len() == 0 && len(q.control) == 0 && !q.ended {
		q.giveBack()
		if q.finishing {
			q.ended = true
			q.mu.Unlock()
			if h, ok := q.nc.(interface{ CloseWrite() error }); ok {
				_ = h.CloseWrite() // the peer has gone before: nothing is left to say
			}
			return false
		}
		q.idle = true
		q.work.Wait()
	}
	defer q.mu.Unlock()
	if q.ended {
		return false
	}
	q.collect()
	return true
}

// collect makes one write of commands and messages; q.mu is held.
func (q *Queue) collect() {
	w := &q.write
	w.segments = w.all[:0]
	w.control, q.control = q.control, w.control[:0]
	w.lead = len(w.control)
	if w.lead > 0 {
		w.segments = append(w.segments, w.control)
	}
	var last *entry
	n, bytes := 0, 0
	for ; n < q.waiting.len() && n < writeMessages && bytes < writeBytes; n++ {
		e := q.waiting.at(n)
		if n > 0 && bytes+e.size > 2*writeBytes {
			break // a large one goes alone
		}
		w.add(e, last != nil && last.tail == nil && last.chunk == e.chunk && last.from+len(last.head) == e.from)
		bytes += e.size
		last = e
	}
	q.inWrite = n
	w.all = w.segments
}

// giveBack keeps no memory while nothing waits; q.mu is held.
func (q *Queue) giveBack() {
	if q.filling != nil && q.filling.held == 0 {
		q.memory.put(q.filling)
		q.filling = nil
	}
	q.waiting.shrink()
	if cap(q.answers) > keptAnswers {
		q.answers = nil
	}
	if cap(q.write.all) > keptAnswers {
		q.write.all = nil
	}
	if cap(q.write.control) > keptControl {
		q.write.control = nil
	}
	if cap(q.control) > keptControl {
		q.control = nil
	}
}

// keptAnswers is how many tickets an idle queue has memory for.
const keptAnswers = ringLeast

// keptControl is the memory for commands that an idle queue keeps: a few of
// them, as heartbeats need.
const keptControl = 512

// once writes what it can with one call and waits until that is something.
func (q *Queue) once() (int, error) {
	w := &q.write
	if q.raw == nil {
		return q.nc.Write(w.segments[0])
	}
	w.n, w.err = 0, nil
	if err := q.raw.Write(w.try); err != nil {
		return 0, err // closed, or Abort's deadline
	}
	if w.n == 0 && w.err == nil {
		return 0, io.ErrShortWrite
	}
	return w.n, w.err
}

// advance enters n bytes as written and answers for the messages that are
// complete.
func (q *Queue) advance(n int) {
	w := &q.write
	w.skip(n)
	lead := min(n, w.lead)
	w.lead -= lead
	q.mu.Lock()
	q.begun += n - lead
	q.written += uint64(n - lead)
	for q.waiting.len() > 0 && q.inWrite > 0 && q.begun >= q.waiting.at(0).size {
		e := q.waiting.at(0)
		q.begun -= e.size
		q.bytes -= int64(e.size)
		q.inWrite--
		if e.ticket.Done != nil {
			q.answers = append(q.answers, e.ticket)
		}
		q.release(e)
		q.waiting.pop()
	}
	var tell func()
	if q.full && q.fits(0) {
		q.full, tell = false, q.onRoom
	}
	if q.behind && q.half(0) {
		q.behind, tell = false, q.onRoom
	}
	q.account()
	q.mu.Unlock()
	q.answer()
	if tell != nil {
		tell()
	}
}

// account tells the memory what release has given back; q.mu is held.
func (q *Queue) account() {
	if q.freed != 0 {
		q.memory.held.Add(-q.freed)
		q.freed = 0
	}
}

// release gives back the memory of an entry; q.mu is held.
func (q *Queue) release(e *entry) {
	if e.fanned {
		q.freed += e.cost()
	}
	if e.shared != nil {
		e.shared.Release()
	}
	c := e.chunk
	if c == nil {
		return
	}
	if c.held--; c.held == 0 {
		if c != q.filling {
			q.memory.put(c)
		} else {
			c.buf = c.buf[:0]
		}
	}
}
