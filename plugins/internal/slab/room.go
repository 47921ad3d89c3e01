// SPDX-License-Identifier: Apache-2.0

package slab

// reserve makes room for a read behind what was read.
func (b *Buffer) reserve() error {
	if b.slab == nil {
		b.begin(take(b.size))
		return nil
	}
	alone := b.mark == b.start && b.slab.refs.Load() == 1
	if alone && b.start > 0 {
		b.end = copy(b.slab.data, b.slab.data[b.start:b.end])
		b.start, b.mark = 0, 0
	}
	if b.fits(alone) {
		return nil
	}
	return b.move()
}

// fits reports whether the next read goes into the slab as it is.
func (b *Buffer) fits(alone bool) bool {
	size, part := len(b.slab.data), b.Buffered()
	room := size - b.end
	switch {
	case size > Max && b.known <= Max:
		return false // what was large has gone
	case alone && size < b.size && part <= size/Step:
		return false // the peer sends more at a time
	default:
		return room >= size/Step || b.missing() <= room && part > size/Step
	}
}

// missing is how many of the bytes that are needed are still to come, as far as
// is known: at least one.
func (b *Buffer) missing() int { return max(b.known-b.Buffered(), 1) }

// moveStep is the share by which a part grows at least when it is moved: what
// comes bit by bit behind a large one does not move that each time.
const moveStep = 8

// move goes on in a new slab, to which what is not taken is carried along. What
// is announced alone takes no memory: a slab beyond the pooled sizes is at most
// Step times as large as what has arrived.
func (b *Buffer) move() error {
	part := b.slab.data[b.start:b.end]
	more := min(b.missing(), (Step-1)*max(len(part), Min))
	size := max(b.size, len(part)+max(more, len(part)/moveStep))
	if size <= Max {
		b.claim.Drop()
	} else if err := b.claim.Take(int64(size)); err != nil {
		return err
	}
	s := take(size)
	n := copy(s.data, part)
	b.retire()
	b.begin(s)
	b.end = n
	return nil
}

// begin goes on in s.
func (b *Buffer) begin(s *slab) {
	b.slab, b.start, b.end, b.mark = s, 0, 0, 0
}

// retire lets go of the slab, but for what was handed out of it.
func (b *Buffer) retire() {
	if b.mark < b.start {
		b.handed = append(b.handed, piece{b.slab, b.mark, b.start})
	} else {
		b.slab.drop()
	}
	b.slab = nil
}

// idle lets go of a slab in which nothing waits to be taken.
func (b *Buffer) idle() {
	if b.slab != nil && b.start == b.end {
		b.retire()
		b.claim.Drop()
		b.start, b.end, b.mark = 0, 0, 0
	}
}
