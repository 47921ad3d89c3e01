// SPDX-License-Identifier: Apache-2.0

package intake

import "github.com/longshore-go/longshore/pluginapi"

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

// HeldLoose is how much of QoS 0 a route keeps that nobody has opened.
const HeldLoose = heldLoose

// Ring is for how many items the receiver's inbox has memory.
func (rc *Receiver) Ring() int {
	rc.in.mu.Lock()
	defer rc.in.mu.Unlock()
	return len(rc.box.ring)
}
