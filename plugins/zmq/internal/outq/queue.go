// SPDX-License-Identifier: Apache-2.0

// Package outq is what waits to be written to one connection: a bounded queue
// of whole messages and a goroutine that writes them, many with one call. It
// knows of every message whether the operating system has all of it.
package outq

import (
	"net"
	"sync"
	"syscall"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// The limits of a queue that are used where none are given.
const (
	DefaultMessages = 1000
	DefaultBytes    = 64 << 20
)

// copyMost is the largest payload that is copied behind its headers. A larger
// one is written from where it lies, beside the copied ones in one call: to copy
// it costs more than a segment of its own.
const copyMost = 16 << 10

// maxControl bounds the bytes of control frames that wait. They are answers to a
// peer that asks and does not read; it is not worth more.
const maxControl = 64 << 10

// Limits bound one queue.
type Limits struct {
	// Messages is how many messages wait at most, those being written included.
	// The default is 1000.
	Messages int
	// Bytes is how many bytes of them, as they are on the wire. One larger message
	// still goes alone. The default is 64 MiB.
	Bytes int64
	// Memory is what encoded messages lie in, shared by the queues of one endpoint.
	// A queue without one has its own.
	Memory *Memory
}

// Ticket says who is told what became of a message.
type Ticket struct {
	// Done is called once, from any goroutine and under no lock of the queue, nil =
	// nobody asks. It must not call Abort.
	Done func(i int, r pluginapi.Receipt)
	I    int
	// Bound says that the message goes to this peer or to none: Abort refuses it
	// where it was not written whole, and does not return it.
	Bound bool
}

// tell answers the ticket.
func (t Ticket) tell(r pluginapi.Receipt) {
	if t.Done != nil {
		t.Done(t.I, r)
	}
}

// Queue writes messages to one connection in the order of Push. It reads
// nothing. All methods may be called from any goroutine.
//
// It goes through three phases: it takes messages; behind End, or Finish, those
// it has are written and the connection is half-closed; Abort ends it. A write that fails ends it as
// well, and closes the connection's reading side, so that who reads there sees
// the end.
type Queue struct {
	nc     net.Conn
	raw    syscall.RawConn // nil where there is none
	limits Limits
	memory *Memory

	mu        sync.Mutex
	work      sync.Cond // the writer has something to do
	idle      bool      // the writer waits for work
	waiting   ring
	bytes     int64  // of waiting
	filling   *chunk // encoded messages are appended to it
	control   []byte // frames that go before the next message
	full      bool   // a message had no room
	behind    bool   // more than half was used
	onRoom    func()
	begun     int // bytes of the first waiting message that are written
	written   uint64
	inWrite   int // messages that the writer has in work
	finishing bool
	ended     bool
	cause     error // of the end
	lost      int   // shared messages that were not written whole
	freed     int64 // of shared messages, to be told to the memory

	gone chan struct{} // Abort was called
	done chan struct{} // the writer has ended

	// Of the writer alone.
	write   write
	answers []Ticket
}

// New returns a queue for an open connection and starts its writer, which ends
// with Abort. The queue does not close the connection.
func New(nc net.Conn, l Limits) *Queue {
	if l.Messages <= 0 {
		l.Messages = DefaultMessages
	}
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	if l.Memory == nil {
		l.Memory = &Memory{}
	}
	q := &Queue{nc: nc, limits: l, memory: l.Memory, gone: make(chan struct{}), done: make(chan struct{})}
	q.work.L = &q.mu
	if sc, ok := nc.(syscall.Conn); ok {
		q.raw, _ = sc.SyscallConn()
	}
	q.write.init()
	go q.run()
	return q
}

// Push takes a message under a name, with frames before that name. A payload of
// up to 16 KiB is copied; a larger one and its bytes must stay as they are until
// the ticket is answered. It never waits. It reports false where there is no room
// or the queue takes nothing more; then the ticket is not answered.
func (q *Queue) Push(m *core.Message, name string, prefix [][]byte, t Ticket) bool {
	size := encodedSize(m, name, prefix)
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.take(int64(size)) {
		return false
	}
	e := entry{size: size, name: m.Name, ticket: t}
	head := size
	if len(m.Payload) > copyMost {
		e.tail = m.Payload
		head -= len(m.Payload)
	}
	q.encode(&e, head, func(dst []byte) []byte { return appendMessage(dst, m, name, prefix, e.tail == nil) })
	q.enter(e)
	return true
}

// PushUnsent takes a message that another queue has not written, as Push does.
func (q *Queue) PushUnsent(u *Unsent) bool {
	size := len(u.head) + len(u.payload)
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.take(int64(size)) {
		return false
	}
	e := entry{size: size, name: u.name, tail: u.payload, ticket: u.ticket}
	q.encode(&e, len(u.head), func(dst []byte) []byte { return append(dst, u.head...) })
	q.enter(e)
	return true
}

// PushShared takes a message that is encoded already and goes to several
// queues, as Push does. The queue holds a reference of its own to it, and
// t.I is what Oldest says of it.
func (q *Queue) PushShared(s *Shared, t Ticket) bool {
	size := len(s.bytes)
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.take(int64(size)) {
		return false
	}
	e := entry{size: size, ticket: t, fanned: true}
	if size <= shareLeast {
		q.encode(&e, size, func(dst []byte) []byte { return append(dst, s.bytes...) })
	} else {
		s.retain()
		e.shared, e.tail = s, s.bytes
	}
	q.memory.held.Add(e.cost())
	q.enter(e)
	return true
}

// Control takes an encoded command, which goes between two messages and before
// those that the writer has not in work. It reports false when the peer lets too
// many of them wait: it should be closed.
func (q *Queue) Control(frame []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended || q.finishing {
		return true // nobody is there to be told, or will be soon
	}
	if len(q.control)+len(frame) > maxControl {
		return false
	}
	q.control = append(q.control, frame...)
	q.wake()
	return true
}

// Room reports whether a message of ordinary size would be taken. Where it is
// not, OnRoom's function is called when that changes.
func (q *Queue) Room() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.take(0)
}

// Level is how much of a queue is used.
type Level int

// The levels of a queue.
const (
	Easy   Level = iota // half of it at most
	Behind              // more
	Full                // a message has no room
	Ended               // nothing is taken any more
)

// Left is what is left of a queue, and of half of it, which may be less than
// nothing.
type Left struct {
	Messages, HalfMessages int
	Bytes, HalfBytes       int64
}

// Level returns how much of the queue is used with a message of size bytes, what
// is left without it, and what Written says. Where more than half is used,
// OnRoom's function is called when that changes.
func (q *Queue) Level(size int) (Level, Left, uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.waiting.len()
	left := Left{
		Messages: q.limits.Messages - n, HalfMessages: q.limits.Messages/2 - n,
		Bytes: q.limits.Bytes - q.bytes, HalfBytes: q.limits.Bytes/2 - q.bytes,
	}
	switch {
	case q.ended || q.finishing:
		return Ended, left, q.written
	case q.half(int64(size)):
		return Easy, left, q.written
	}
	q.behind = true
	if q.take(int64(size)) {
		return Behind, left, q.written
	}
	return Full, left, q.written
}

// OnRoom sets what is called when a queue that had no room has some again, or one
// that was behind is not any more. It is called from the writer's goroutine under
// no lock of the queue, and must not call Abort.
func (q *Queue) OnRoom(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.onRoom = f
}

// Depth returns how many messages and bytes are not written yet.
func (q *Queue) Depth() (messages int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.len(), q.bytes
}

// take reports whether there is room for size bytes more and remembers that
// there was not; q.mu is held.
func (q *Queue) take(size int64) bool {
	if q.ended || q.finishing {
		return false
	}
	if !q.fits(size) {
		q.full = true
		return false
	}
	return true
}

// fits reports whether size bytes more are within the limits; q.mu is held.
func (q *Queue) fits(size int64) bool {
	n := q.waiting.len()
	return n == 0 || n < q.limits.Messages && q.bytes < q.limits.Bytes && q.bytes+size <= q.limits.Bytes
}

// half reports whether size bytes more are within half of the limits; q.mu is
// held.
func (q *Queue) half(size int64) bool {
	n := q.waiting.len()
	return n == 0 || n < q.limits.Messages/2 && q.bytes+size <= q.limits.Bytes/2
}

// encode appends what is copied of a message to the chunk that is being filled;
// q.mu is held.
func (q *Queue) encode(e *entry, size int, appendTo func(dst []byte) []byte) {
	c := q.filling
	if c == nil || cap(c.buf)-len(c.buf) < size {
		if c != nil && c.held == 0 {
			q.memory.put(c)
		}
		c = q.memory.chunk(size)
		q.filling = c
	}
	e.chunk, e.from = c, len(c.buf)
	c.buf = appendTo(c.buf)
	e.head = c.buf[e.from:]
	c.held++
}

// enter puts an encoded message into the queue; q.mu is held.
func (q *Queue) enter(e entry) {
	q.waiting.push(e)
	q.bytes += int64(e.size)
	q.wake()
}

// wake lets the writer go on; q.mu is held.
func (q *Queue) wake() {
	if q.idle {
		q.idle = false
		q.work.Signal()
	}
}
