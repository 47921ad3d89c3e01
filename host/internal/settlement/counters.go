// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// State is what a lane is at.
type State struct {
	Since      time.Time // when any but InWork and Position changed last
	Attached   bool
	Generation uint64
	Ended      bool        // the subscription has ended, see Fault
	Fault      *core.Fault // nil = there is nothing more
	CaughtUp   bool        // all there is has been delivered
	Paused     bool        // by Pause, or from the beginning
	Seeking    bool        // a caller of Seek waits
	Circuit    CircuitState
	Regained   time.Time // when credit came back after a pause or an open circuit breaker; zero = never
	InWork     uint64
	Position   string // of the newest delivery received, "" = unknown
}

// Withheld reports whether the source has no credit by a pause or an open circuit
// breaker, or is being moved: that it has caught up may not hold any more.
func (s *State) Withheld() bool { return s.Paused || s.Seeking || s.Circuit == CircuitOpen }

// Counters count a lane's deliveries. Each delivery is in exactly one of
// Acked to Stale, or in work.
type Counters struct {
	Received     uint64
	Acked        uint64
	Retried      uint64 // requeued, or a copy left
	Dropped      uint64 // gone for good without a dead letter, a retry that the source cannot carry out included
	DeadLettered uint64
	Parked       uint64 // kept by the journal, not published
	Released     uint64 // left to the source
	Stale        uint64 // ended behind the handler's back, or came back before it began

	InWork  uint64 // now
	Waiting uint64 // of InWork: copies that wait for their time
	Lost    uint64 // L-LOST, L-UNR and L-ABND, beside the above
	Failed  uint64 // verdicts that failed or came too late, beside the above
	Reports uint64 // errors bound to no delivery (L-STREAM)
}

// Published counts an outbox's publishes by their receipts. What was taken back
// before it was sent is in none.
type Published struct {
	Confirmed uint64
	Refused   uint64 // by the transport, or because the endpoint was down
	Unknown   uint64 // it may have been sent
	Missing   uint64 // receipts now, of what waits to be sent as well
}

// add counts a receipt.
func (p *Published) add(s frame.ReceiptStatus) {
	switch s {
	case frame.ReceiptConfirmed:
		p.Confirmed++
	case frame.ReceiptRefused:
		p.Refused++
	default:
		p.Unknown++
	}
}

// inWork is what is received and in no other count.
func (c *Counters) inWork() uint64 {
	return c.Received - c.Acked - c.Retried - c.Dropped - c.DeadLettered - c.Parked - c.Released - c.Stale
}

// Result is the count that a delivery ends in.
type Result uint8

// The results.
const (
	ResultAcked Result = iota
	ResultRetried
	ResultDropped
	ResultDeadLettered
	ResultParked
	ResultReleased
	ResultStale
)

// add counts a delivery that has ended.
func (c *Counters) add(k Result) {
	switch k {
	case ResultAcked:
		c.Acked++
	case ResultRetried:
		c.Retried++
	case ResultDropped:
		c.Dropped++
	case ResultDeadLettered:
		c.DeadLettered++
	case ResultParked:
		c.Parked++
	case ResultReleased:
		c.Released++
	default:
		c.Stale++
	}
}

// Left is what a limited stop cut off.
type Left struct {
	Endpoint     string
	Subscription string
	Running      []string // name and position of deliveries that were cut off at their handlers, at most 16
	Handlers     int      // handlers that did not return
	Cancelled    int      // handlers that the stop cancelled and that returned without an ack
	Unhandled    int      // deliveries that no handler has begun and that do not come back
	Settlements  int      // plans that were not carried out to their end
	Lost         int      // of Settlements: messages that do not come back
}

// Empty reports whether nothing was cut off.
func (l Left) Empty() bool {
	return l.Handlers == 0 && l.Cancelled == 0 && l.Unhandled == 0 && l.Settlements == 0
}

// name adds the name of a delivery that is cut off, while there is room.
func (l *Left) name(f *flight) {
	if len(l.Running) < shownRunning && f.frame != nil {
		l.Running = append(l.Running, describe(f.item()))
	}
}
