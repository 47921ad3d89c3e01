// SPDX-License-Identifier: Apache-2.0

package envelope

import "unsafe"

// slab hands out pieces of memory that was never used before.
type slab[T any] struct {
	free  []T
	large []T  // the last room, where it is none of free
	home  *[]T // the memory that is used again, nil = none
}

// slabSize bounds the bytes of one slab: as long as one piece of it is kept,
// all of it is.
const slabSize = 256 << 10

// room returns n elements that are free until they are taken. Where the slab
// has less, a new one begins, with total elements as far as slabSize allows; a
// large piece stands alone.
func (s *slab[T]) room(n, total int) []T {
	var t T
	most := slabSize / int(unsafe.Sizeof(t))
	switch {
	case n <= len(s.free):
	case n > most/4:
		s.large = make([]T, n)
		return s.large
	case s.home != nil:
		s.free = make([]T, max(n, min(len(*s.home)+total, most)))
		*s.home = s.free
	default:
		s.free = make([]T, max(n, min(total, most)))
	}
	s.large = nil
	return s.free[:n]
}

// take takes the first n elements of the last room.
func (s *slab[T]) take(n int) []T {
	if s.large != nil {
		piece := s.large[:n:n]
		s.large = nil
		return piece
	}
	piece := s.free[:n:n]
	s.free = s.free[n:]
	return piece
}
