// SPDX-License-Identifier: Apache-2.0

package reader

import "sync"

// Small pieces, which tails are read in, share slabs. What stands in a slab is
// not written again, for payloads handed out may be kept.
const (
	slabSize = 64 << 10
	slabMost = slabSize / 4 // larger pieces have memory of their own
)

// slab gives out memory for small pieces.
type slab struct {
	mu   sync.Mutex
	buf  []byte
	used int
}

// take returns n bytes that nobody else has.
func (s *slab) take(n int) []byte {
	if n > slabMost {
		return make([]byte, n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.buf)-s.used < n {
		s.buf, s.used = make([]byte, slabSize), 0
	}
	s.used += n
	return s.buf[s.used-n : s.used : s.used]
}

// trim returns the first n bytes of what take gave, and how much memory they
// keep. It takes the rest back if nothing was taken since.
func (s *slab) trim(b []byte, n int) (kept []byte, held int) {
	b = b[:cap(b)]
	kept = b[:n:n]
	if len(b) > slabMost || n == len(b) {
		return kept, len(b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if begin := s.used - len(b); begin >= 0 && &s.buf[begin] == &b[0] {
		s.used = begin + n
		return kept, n
	}
	return kept, len(b)
}
