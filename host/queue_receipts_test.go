// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// receipts are those of what a subscription that has caught up gets from its own
// host: each leaves once its delivery was passed on. Otherwise a host that has
// all receipts, and was told that there is nothing more, would rightly stop.
// They are under the queues' lock.
type receipts struct {
	early []func() // their deliveries are not taken yet
	taken []func() // Receive returns their deliveries, or has
	takes bool     // a Receive with room waits, or one follows
	shut  bool     // none follows
}

// publish takes a message. It reports whether it calls done itself, once the
// message is with the host.
func (q *queues) publish(m core.Message, carry []byte, done func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(m, carry)
	for at, x := range q.named {
		if !x.replays || !matches(at, m.Name) {
			continue
		}
		for _, s := range x.subs {
			if s.takes && !s.shut {
				s.early = append(s.early, done)
				return true
			}
		}
	}
	return false
}

// passedOn says that all that Receive has returned is with the host, and that it
// is called again.
func (s *queueSub) passedOn(room pluginapi.Room) {
	s.q.mu.Lock()
	due := s.taken
	s.taken, s.takes = nil, room.Messages > 0
	if !s.takes {
		due = append(due, s.early...)
		s.early = nil
	}
	s.q.mu.Unlock()
	for _, f := range due {
		f()
	}
}

// takeReceipts says that Receive takes what is ready.
func (s *queueSub) takeReceipts() {
	s.taken = append(s.taken, s.early...)
	s.early = nil
}

// StopIntake is the end of Receive.
func (s *queueSub) StopIntake() {
	s.q.mu.Lock()
	due := append(s.taken, s.early...)
	s.taken, s.early, s.shut = nil, nil, true
	s.q.mu.Unlock()
	for _, f := range due {
		f()
	}
}
