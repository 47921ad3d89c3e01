// SPDX-License-Identifier: Apache-2.0

package frame

// cutter cuts a list into frames of at most max entries and MaxBytes; an entry
// larger than that goes alone.
type cutter[T any] struct {
	rest  []T
	max   int
	size  func(*T) int
	ahead int // how many of rest make the next frame
	room  int // the size of its content
}

// newCutter starts with entries.
func newCutter[T any](entries []T, max int, size func(*T) int) cutter[T] {
	c := cutter[T]{rest: entries, max: max, size: size}
	c.look()
	return c
}

// look measures the next frame.
func (c *cutter[T]) look() {
	c.ahead, c.room = 0, 0
	for c.ahead < len(c.rest) && c.ahead < c.max {
		s := sizeMessage(c.size(&c.rest[c.ahead]))
		if c.ahead > 0 && c.room+s > MaxBytes {
			break
		}
		c.room += s
		c.ahead++
	}
}

// next returns the next frame's entries and the size of its content.
func (c *cutter[T]) next() (entries []T, content int) {
	entries, content = c.rest[:c.ahead], c.room
	c.rest = c.rest[c.ahead:]
	c.look()
	return entries, content
}

// small reports whether one frame holds all, with no entry near a limit.
func (c *cutter[T]) small() bool { return c.ahead == len(c.rest) && c.room <= MaxBytes }

// fits reports whether every entry fits a wire message.
func (c *cutter[T]) fits() bool {
	if c.small() {
		return true
	}
	for i := range c.rest {
		if c.size(&c.rest[i])+wrapping > MaxWireSize {
			return false
		}
	}
	return true
}

// wrapping is the most that tags and lengths around a lone entry come to.
const wrapping = 32
