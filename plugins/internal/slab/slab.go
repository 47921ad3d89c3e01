// SPDX-License-Identifier: Apache-2.0

// Package slab reads a connection into pooled memory, and lends out the parts of
// it that packets or frames lie in.
package slab

import (
	"sync"
	"sync/atomic"

	"github.com/longshore-go/longshore/plugins/internal/poison"
)

// The sizes of pooled slabs: the least, which what comes from a quiet peer lies
// in, and steps up to the largest, which is a read of a busy one.
const (
	Min     = 4 << 10
	Step    = 4
	Max     = 256 << 10
	classes = 4 // Min * Step^3 = Max
)

// slabs are the slabs that nobody uses, by class.
var slabs [classes]sync.Pool

// slab is memory that is read into. It goes back to its pool when neither the
// buffer nor a loan refers to it.
type slab struct {
	data  []byte
	class int // of its pool, classes = none
	refs  atomic.Int32
}

// take returns a slab of at least n bytes with one reference.
func take(n int) *slab {
	class, size := 0, Min
	for size < n && class < classes {
		class, size = class+1, size*Step
	}
	var s *slab
	if class < classes {
		if s, _ = slabs[class].Get().(*slab); s == nil {
			s = &slab{data: make([]byte, size), class: class}
		}
	} else {
		s = &slab{data: make([]byte, n), class: class}
	}
	s.refs.Store(1)
	return s
}

// drop takes one reference back.
func (s *slab) drop() {
	if s.refs.Add(-1) == 0 && s.class < classes {
		slabs[s.class].Put(s)
	}
}

// piece is a part of a slab that has a reference to it.
type piece struct {
	slab     *slab
	from, to int
}

func (p piece) release() {
	poison.Bytes(p.slab.data[p.from:p.to])
	p.slab.drop()
}

// A Loan is memory of a Buffer that is lent out. The zero value is ready, and it
// may be used again after Release. One goroutine uses it at a time.
type Loan struct {
	pieces []piece
}

// Release gives the memory back: nothing that lies in it may be used any more.
// Any goroutine may call it; it does nothing where nothing is lent.
func (l *Loan) Release() {
	for i := range l.pieces {
		l.pieces[i].release()
	}
	clear(l.pieces)
	l.pieces = l.pieces[:0]
}

// Size returns how many bytes are lent.
func (l *Loan) Size() int {
	n := 0
	for i := range l.pieces {
		n += l.pieces[i].to - l.pieces[i].from
	}
	return n
}
