// SPDX-License-Identifier: Apache-2.0

package client

import "sync"

// state is whether the brokers are there, and who is told.
type state struct {
	mu      sync.Mutex
	up      bool
	reason  string        // why not
	changed chan struct{} // closed at the next change
	frozen  bool          // nothing changes any more

	number, told uint64 // of changes
	to           func(up bool, reason string)
	telling      bool
}

func newState() *state {
	return &state{reason: "not connected yet", changed: make(chan struct{}), number: 1}
}

// set makes it another one.
func (s *state) set(up bool, reason string) {
	s.mu.Lock()
	if s.frozen || s.up == up && s.reason == reason {
		s.mu.Unlock()
		return
	}
	s.number++
	s.reason = reason
	if s.up != up {
		s.up = up
		close(s.changed)
		s.changed = make(chan struct{})
	}
	s.mu.Unlock()
	s.tell()
}

// freeze leaves it as it is: an end that was asked for is no loss.
func (s *state) freeze() {
	s.mu.Lock()
	s.frozen = true
	s.mu.Unlock()
}

func (s *state) now() (up bool, reason string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up, s.reason, s.changed
}

// watch has states told from now on, the present one at once.
func (s *state) watch(to func(up bool, reason string)) {
	s.mu.Lock()
	s.to, s.told = to, 0
	s.mu.Unlock()
	s.tell()
}

// tell tells until the latest state is told, under no lock. One goroutine does so at
// a time, so that states come one after the other.
func (s *state) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.telling {
		return
	}
	s.telling = true
	for s.to != nil && s.told != s.number {
		to, up, reason := s.to, s.up, s.reason
		s.told = s.number
		s.mu.Unlock()
		to(up, reason)
		s.mu.Lock()
	}
	s.telling = false
}
