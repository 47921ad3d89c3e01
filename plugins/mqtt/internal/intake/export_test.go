// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"

	"github.com/longshore-go/longshore/pluginapi"
)

// Take is Receive that does not wait.
func (rc *Receiver) Take(room pluginapi.Room) (pluginapi.Batch, bool, error) { return rc.take(room) }

// Held is how many bytes of memory are kept for what waits for the receiver, as
// far as they are its own.
func (rc *Receiver) Held() (items int, bytes int64) {
	rc.in.mu.Lock()
	defer rc.in.mu.Unlock()
	seen := map[*memory]bool{}
	for i := range rc.box.n {
		m := rc.box.at(i).memory
		if seen[m] {
			continue
		}
		seen[m] = true
		bytes += int64(cap(m.copy)) + int64(m.loan.Size())
	}
	return rc.box.n, bytes
}

// State is what is known of the session.
type State struct {
	Entries int // identifiers in use
	Flight  int
	Loose   int
	Bytes   int64 // of them
}

// State returns it.
func (in *Intake) State() State {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := State{Flight: in.flight, Loose: in.loose.messages, Bytes: in.loose.bytes}
	in.ids.each(func(*entry) { s.Entries++ })
	return s
}

// Counters are the totals.
func (in *Intake) Counters() totals {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.counters
}

// HeldLoose is how much of QoS 0 a route keeps that nobody has opened.
const HeldLoose = heldLoose

// Ring is for how many items the receiver's inbox has memory.
func (rc *Receiver) Ring() int {
	rc.in.mu.Lock()
	defer rc.in.mu.Unlock()
	return len(rc.box.ring)
}

// Chunk is how large the chunk is that copies go to.
func (rc *Receiver) Chunk() int {
	rc.in.mu.Lock()
	defer rc.in.mu.Unlock()
	if rc.box.chunk == nil {
		return 0
	}
	return cap(rc.box.chunk.copy)
}

// Unsound says which of the counts is not what there is.
func (in *Intake) Unsound() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	var all loose
	var excess int64
	for _, rt := range in.routes {
		boxes := []*inbox{&rt.box}
		for _, rc := range rt.members {
			boxes = append(boxes, &rc.box)
		}
		for _, b := range boxes {
			n, bytes := 0, int64(0)
			for i := range b.n {
				it := b.at(i)
				bytes += int64(it.size)
				if it.loose {
					n++
					all.add(it.size)
				}
				if it.excess {
					excess += int64(it.size)
				}
				if it.memory == nil || it.memory.refs.Load() < 1 {
					return "an item without memory"
				}
				if it.loose && it.excess {
					return "an item counts as loose and as excess"
				}
				if h := it.handle; h != nil && h.fate == fateQueued && h.entry == nil {
					return "a handle without an entry"
				}
			}
			for i := b.n; i < len(b.ring); i++ {
				if it := b.at(i); it.memory != nil || it.handle != nil {
					return "something of an item that is gone"
				}
			}
			if b.fresh != 0 || n != b.loose || bytes != b.bytes {
				return fmt.Sprintf("inbox: %d fresh, %d loose of %d, %d bytes of %d", b.fresh, b.loose, n, b.bytes, bytes)
			}
		}
	}
	if all != in.loose || excess != in.excess {
		return fmt.Sprintf("loose %+v of %+v, excess %d of %d", in.loose, all, in.excess, excess)
	}
	flight := 0
	reason := ""
	in.ids.each(func(e *entry) {
		if in.live != nil && e.seen == in.number && e.state != stateSettled {
			flight++
		}
		open := 0
		for h := e.first; h != nil; h = h.next {
			open++
		}
		if open != e.open {
			reason = fmt.Sprintf("entry %d: %d open of %d", e.id, e.open, open)
		}
	})
	if in.live != nil && flight != in.flight {
		return fmt.Sprintf("%d in flight of %d", in.flight, flight)
	}
	return reason
}
