// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// socket is the connection below TLS. Once it is watched it takes note of whatever is
// taken of a write, also of a part: so a broker that reads slowly, as one that throttles,
// is told from one that is gone.
type socket struct {
	net.Conn
	look    time.Duration // how often a write that waits is looked at
	born    time.Time
	taken   atomic.Int64 // when anything was taken last, since born, in nanoseconds
	watched atomic.Bool
}

// watch begins: deadlines of others are over.
func (s *socket) watch(look time.Duration) {
	s.look = look
	s.watched.Store(true)
}

// quiet is for how long nothing has been taken.
func (s *socket) quiet() time.Duration { return time.Since(s.born) - time.Duration(s.taken.Load()) }

// Write writes all of b, for which it waits as long as the connection is there. The
// system wakes a write that waits only when much of its buffer is free, so it is tried
// again before that.
func (s *socket) Write(b []byte) (int, error) {
	for n := 0; ; {
		watched := s.watched.Load()
		if watched {
			if err := s.SetWriteDeadline(time.Now().Add(s.look)); err != nil {
				return n, err
			}
		}
		k, err := s.Conn.Write(b[n:])
		if n += k; k > 0 {
			s.taken.Store(int64(time.Since(s.born)))
		}
		if !watched || n == len(b) || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
}
