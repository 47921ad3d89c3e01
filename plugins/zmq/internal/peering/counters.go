// SPDX-License-Identifier: Apache-2.0

package peering

import "sync/atomic"

// Counters are what has happened since Start, and what is there now.
type Counters struct {
	Accepted     int64 // connections
	Attached     int64 // handshakes that made a peer, dialed or accepted
	Failed       int64 // handshakes that made none
	TooMany      int64 // connections closed for want of room
	Dropped      int64 // accepted peers closed for what they did or left undone
	AcceptErrors int64
	DialErrors   int64
	Peers        int // now
	Handshakes   int // now, of accepted connections
}

type counters struct {
	accepted, attached, failed, tooMany, dropped, acceptErrors, dialErrors atomic.Int64
}

// Counters returns the counters.
func (p *Peering) Counters() Counters {
	c := Counters{
		Accepted: p.counters.accepted.Load(), Attached: p.counters.attached.Load(), Failed: p.counters.failed.Load(),
		TooMany: p.counters.tooMany.Load(), Dropped: p.counters.dropped.Load(),
		AcceptErrors: p.counters.acceptErrors.Load(), DialErrors: p.counters.dialErrors.Load(),
	}
	_, c.Handshakes = p.room.counts()
	p.mu.Lock()
	c.Peers = len(p.peers)
	p.mu.Unlock()
	return c
}
