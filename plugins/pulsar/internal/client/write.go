// SPDX-License-Identifier: Apache-2.0

package client

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// waitingBound is how many bytes may wait to be written before Room is false.
	waitingBound = 1 << 20
	// writeAtOnce is the most that one write is given, in bytes.
	writeAtOnce = 256 << 10
	// keptOutput is the most memory that is kept for what is to be written, in bytes.
	keptOutput = waitingBound
)

// output is what a connection is to write: frames gather while others are written. That
// a goroutine writes, and not who sends, costs under a microsecond where one frame is
// sent at a time, and less than nothing where several are.
type output struct {
	wake    chan struct{} // has the writing goroutine write
	writing atomic.Int64  // when its write under way has begun, since the connection has, in nanoseconds; 0 = none is

	mu     sync.Mutex
	buf    []byte // to be written
	spare  []byte // memory for the next
	flying int    // bytes that are being written
	busy   bool   // the writing goroutine writes, or is about to
	full   bool   // Room was false
	ended  bool

	answers [2]bool // buf has that answer, see once
}

// The answers to what a broker may ask for at any time.
const (
	answerPing = iota
	answerChallenge
)

// end drops what has not been written.
func (o *output) end() {
	o.mu.Lock()
	o.ended, o.buf, o.spare = true, nil, nil
	o.mu.Unlock()
}

// shrink gives back memory that a quiet connection does not need.
func (o *output) shrink() {
	o.mu.Lock()
	if !o.busy {
		o.buf, o.spare = nil, nil
	}
	o.mu.Unlock()
}

// Send has frames written that build appends, which is called at once and must not call
// the connection. It does not wait, and drops them where the connection has ended.
func (c *Conn) Send(build func(dst []byte) []byte) {
	o := &c.out
	o.mu.Lock()
	if o.ended {
		o.mu.Unlock()
		return
	}
	o.buf = build(o.buf)
	if o.busy || len(o.buf) == 0 {
		o.mu.Unlock()
		return
	}
	o.busy = true
	o.mu.Unlock()
	o.wake <- struct{}{}
}

// once is Send for an answer that says the same however often it was asked for: one that
// waits to be written is enough.
func (c *Conn) once(answer int, build func(dst []byte) []byte) {
	c.Send(func(dst []byte) []byte {
		if c.out.answers[answer] {
			return dst
		}
		c.out.answers[answer] = true
		return build(dst)
	})
}

// Room reports whether less than 1 MiB waits to be written. Where it does not, every
// producer of the connection hears of it when less than half of that waits.
func (c *Conn) Room() bool {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended || len(o.buf)+o.flying < waitingBound {
		return true
	}
	o.full = true
	return false
}

// write writes what is to be written until the connection ends.
func (c *Conn) write() {
	for {
		select {
		case <-c.out.wake:
		case <-c.done:
			return
		}
		for c.out.next(c) {
		}
	}
}

// next writes what has gathered. It reports whether more has gathered meanwhile.
func (o *output) next(c *Conn) bool {
	o.mu.Lock()
	b := o.buf
	o.buf, o.spare, o.flying = o.spare[:0], nil, len(b)
	o.answers = [2]bool{}
	o.mu.Unlock()
	for rest := b; len(rest) > 0; {
		n := min(len(rest), writeAtOnce)
		o.writing.Store(int64(max(time.Since(c.began), 1)))
		if _, err := c.nc.Write(rest[:n]); err != nil {
			c.end(err)
			return false
		}
		rest = rest[n:]
	}
	o.writing.Store(0)
	o.mu.Lock()
	o.flying = 0
	if cap(b) <= keptOutput && !o.ended {
		o.spare = b[:0]
	}
	o.busy = len(o.buf) > 0
	more, room := o.busy, o.full && len(o.buf) < waitingBound/2
	o.full = o.full && !room
	o.mu.Unlock()
	if room {
		c.tellRoom()
	}
	return more
}

// tellRoom tells the producers that there is room.
func (c *Conn) tellRoom() {
	c.mu.Lock()
	seats := make([]*seat[ProducerHandler], 0, len(c.producers))
	for _, s := range c.producers {
		seats = append(seats, s)
	}
	c.mu.Unlock()
	for _, s := range seats {
		if !s.free.Load() {
			s.handler.Room()
		}
	}
}
