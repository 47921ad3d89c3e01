// SPDX-License-Identifier: Apache-2.0

package pipe

// maxNumbered is how many keys have a sequence of their own at a time. Beyond it
// the key used first begins again at 0.
const maxNumbered = 1 << 16

// numbers are sequences by key, from 0. The zero value is ready.
type numbers struct {
	// A pointer, so that an entry is never assigned again: the map would take
	// over the new key, whose memory is only valid until its publish is done.
	upcoming map[string]*uint64
	order    []string // by first use
}

// next returns a key's number and goes on to the following.
func (n *numbers) next(key string) uint64 {
	upcoming := n.of(key)
	number := *upcoming
	*upcoming = number + 1
	return number
}

// said takes note of a number that a line gave itself: the next line of the key
// that gives none has the same, as in the reference.
func (n *numbers) said(key string, number uint64) { *n.of(key) = number }

// of returns a key's upcoming number, entering the key when it is new.
func (n *numbers) of(key string) *uint64 {
	if upcoming, known := n.upcoming[key]; known {
		return upcoming
	}
	if n.upcoming == nil {
		n.upcoming = make(map[string]*uint64)
	}
	if len(n.order) == maxNumbered {
		delete(n.upcoming, n.order[0])
		n.order = n.order[1:]
	}
	n.order = append(n.order, key)
	upcoming := new(uint64)
	n.upcoming[key] = upcoming
	return upcoming
}
