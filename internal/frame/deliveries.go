// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"sync"
	"sync/atomic"

	"github.com/longshore-go/longshore/core"
)

// Deliveries is one frame of messages. Its items share one slab, which goes
// back to its pool when the last holder has released the frame: Retain counts a
// holder, Release drops one. A new frame has one holder.
//
// In builds with the race detector a released slab is overwritten, so that a
// use after release shows.
type Deliveries struct {
	Items []Delivery
	store store
}

// NewDeliveries returns an empty pooled frame with one holder.
func NewDeliveries() *Deliveries { return DeliveriesOf(MaxItems) }

// DeliveriesOf returns an empty pooled frame with one holder and room for n items, so
// that a frame of one message does not hold the room of a full one.
func DeliveriesOf(n int) *Deliveries {
	c := class(n)
	d, ok := deliveryFrames[c].Get().(*Deliveries)
	if !ok {
		d = &Deliveries{Items: make([]Delivery, 0, classes[c])}
	}
	d.store.open()
	return d
}

// Retain counts n more holders.
func (d *Deliveries) Retain(n int) { d.store.retain(n) }

// Release drops one holder. After the last one neither the frame nor what its
// items point to may be used.
func (d *Deliveries) Release() {
	if !d.store.release() {
		return
	}
	clear(d.Items)
	d.Items = d.Items[:0]
	d.store.clear()
	if c, ok := home(cap(d.Items)); ok {
		deliveryFrames[c].Put(d)
	}
}

// Cut takes over the caller's holder of d and returns its items in frames of at
// most MaxItems, each with one holder. They share the memory of d, which is
// released behind the last of them.
func (d *Deliveries) Cut() []*Deliveries {
	var frames []*Deliveries
	for rest := d.Items; len(rest) > 0; rest = rest[min(MaxItems, len(rest)):] {
		f := NewDeliveries()
		f.Items = append(f.Items, rest[:min(MaxItems, len(rest))]...)
		f.store.behind = d
		frames = append(frames, f)
	}
	d.Retain(len(frames))
	d.Release()
	return frames
}

// Publishes is one frame of messages to publish, pooled like Deliveries.
type Publishes struct {
	Items []Outgoing
	store store
}

// NewPublishes returns an empty pooled frame with one holder.
func NewPublishes() *Publishes { return PublishesOf(MaxItems) }

// PublishesOf returns an empty pooled frame with one holder and room for n items, so
// that a frame of one message does not hold the room of a full one.
func PublishesOf(n int) *Publishes {
	c := class(n)
	p, ok := publishFrames[c].Get().(*Publishes)
	if !ok {
		p = &Publishes{Items: make([]Outgoing, 0, classes[c])}
	}
	p.store.open()
	return p
}

// Retain counts n more holders.
func (p *Publishes) Retain(n int) { p.store.retain(n) }

// Release drops one holder. After the last one neither the frame nor what its
// items point to may be used.
func (p *Publishes) Release() {
	if !p.store.release() {
		return
	}
	clear(p.Items)
	p.Items = p.Items[:0]
	p.store.clear()
	if c, ok := home(cap(p.Items)); ok {
		publishFrames[c].Put(p)
	}
}

// Cut takes over the caller's holder of p and returns its items in frames of at
// most MaxItems, as Deliveries.Cut does.
func (p *Publishes) Cut() []*Publishes {
	var frames []*Publishes
	for rest := p.Items; len(rest) > 0; rest = rest[min(MaxItems, len(rest)):] {
		f := NewPublishes()
		f.Items = append(f.Items, rest[:min(MaxItems, len(rest))]...)
		f.store.behind = p
		frames = append(frames, f)
	}
	p.Retain(len(frames))
	p.Release()
	return frames
}

// classes are the item counts that frames are pooled by.
var classes = [...]int{4, 32, MaxItems}

// The pools of frames, one a class.
var (
	deliveryFrames [len(classes)]sync.Pool
	publishFrames  [len(classes)]sync.Pool
)

// class returns the class of frames of n items.
func class(n int) int {
	for c, size := range classes {
		if n <= size {
			return c
		}
	}
	return len(classes) - 1
}

// home returns the class of a frame with room for n items; a frame that was
// grown beyond the largest is not pooled.
func home(n int) (int, bool) {
	for c := len(classes) - 1; c >= 0; c-- {
		if n >= classes[c] {
			return c, n <= 2*classes[len(classes)-1]
		}
	}
	return 0, false
}

// keptHeaders is the room for headers that a pooled frame keeps: three a
// message of a full frame, with some to spare.
const keptHeaders = 4 * MaxItems

// store is what the items of a frame point to, and the count of its holders.
type store struct {
	holders atomic.Int64
	slab    *[]byte       // nil = the items own their memory
	headers []core.Header // cut into the items' headers
	behind  holder        // a frame whose memory the items lie in, nil = none
}

// holder is a frame that another one holds.
type holder interface{ Release() }

// open makes a pooled frame one holder's.
func (s *store) open() {
	if !s.holders.CompareAndSwap(0, 1) {
		panic("frame: pooled while held")
	}
}

// retain counts n more holders.
func (s *store) retain(n int) {
	if s.holders.Add(int64(n)) <= int64(n) {
		panic("frame: retained after release")
	}
}

// release drops a holder and reports whether it was the last.
func (s *store) release() bool {
	left := s.holders.Add(-1)
	if left < 0 {
		panic("frame: released twice")
	}
	return left == 0
}

// clear gives the slab back and forgets the headers.
func (s *store) clear() {
	clear(s.headers)
	s.headers = s.headers[:0]
	if cap(s.headers) > keptHeaders {
		s.headers = nil
	}
	if s.slab != nil {
		Pool{}.Put(s.slab)
		s.slab = nil
	}
	if s.behind != nil {
		s.behind.Release()
		s.behind = nil
	}
}
