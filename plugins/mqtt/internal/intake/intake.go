// SPDX-License-Identifier: Apache-2.0

// Package intake is what one MQTT session receives: it finds the subscriptions
// that a PUBLISH is for, keeps it until they are asked for messages, answers it
// when all of them have settled it, and knows what becomes of it when the
// connection is lost (ADR 0113).
package intake

import (
	"hash/maphash"
	"log/slog"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/carry"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/topic"
)

// Link is one network connection to the server. Its methods may be called from
// any goroutine; none of them blocks.
type Link interface {
	// Number is from 1 on, and larger than that of the one before.
	Number() uint64
	// Write has whole packets appended to what is to be written. It reports false
	// where the link has ended.
	Write(appendTo func(dst []byte) []byte) (mark uint64, ok bool)
	// End ends the link with a DISCONNECT of the code.
	End(err error, code byte)
	// Waiting is how many bytes are not written yet.
	Waiting() int
}

// Session is what is known of the session when a link is up.
type Session struct {
	Present bool // the server has it still: what is unanswered comes again (CONNACK, 3.2.2.1.1)
	Kept    bool // it outlives this process: asked for, and not cut to nothing by the server
}

// Config of an intake. The zero values of its limits mean none.
type Config struct {
	Log            *slog.Logger
	Instance       carry.Instance
	ReceiveMaximum int   // PUBLISH of QoS 1 and 2 without an answer that CONNECT allows (3.1.2.11.3)
	QoS0Messages   int   // that wait for all subscriptions together
	QoS0Bytes      int64 // of them
}

// Intake is the receiving side of one session, over all its links. Its methods
// are of three kinds:
//
//   - Up, Packet, Handled and Down are called by the goroutine that reads the
//     links, in the order of a link's life, and none of them blocks.
//   - A Receiver's methods are called as [pluginapi.Subscription] says.
//   - All others may be called from any goroutine.
//
// After Close nothing is delivered or answered any more.
type Intake struct {
	c    Config
	seed maphash.Seed

	// Of the goroutine that reads.
	arrivals    []arrival
	identifiers []uint32
	matched     []*Route
	touched     []*inbox
	answers     answers
	clock       clock

	mu      sync.Mutex
	live    Link   // nil = there is none
	number  uint64 // of the last one
	kept    bool   // Session.Kept of the last one
	flight  int    // PUBLISH of the live link that hold a slot of the server's
	ids     table
	plain   []byte // the carry of what came on the last link at QoS 0 and does not expire
	routes  map[string]*Route
	byID    map[uint32]*Route
	byTopic topic.Table[*Route]
	loose   loose
	excess  int64                  // bytes that wait and came beyond the Receive Maximum
	overrun bool                   // the live link has gone beyond it
	returns map[delivered]struct{} // see Returns
	fault   *core.Fault            // of Fail
	closed  bool

	entries  []*entry // that are free
	handles  []*handle
	counters totals
	lines    lines
}

// loose is what waits and nobody could answer: QoS 0, and what is left of a
// session that is gone.
type loose struct {
	messages int
	bytes    int64
}

// New returns an intake without routes.
func New(c Config) *Intake {
	in := &Intake{
		c: c, seed: maphash.MakeSeed(),
		routes: map[string]*Route{}, byID: map[uint32]*Route{},
	}
	in.answers.init()
	in.lines.init()
	return in
}

// totals are since New.
type totals struct {
	Messages   uint64 // handed out
	Again      uint64 // of them, those that the server said it had sent before
	Adopted    uint64 // that came again over a resumed session while they were in hand, or settled, and were not handed out again
	Dropped    uint64 // of QoS 0 or of a lost session, for which there was no room
	Unread     uint64 // that waited at the end, and nobody sends again
	Expired    uint64 // that expired while they waited
	LeftOver   uint64 // that no filter matches
	Strays     uint64 // that came for a filter nobody reads, and were handed to those that match
	Voided     uint64 // deliveries that ended without a verdict
	Undecoded  uint64 // of Messages, those that could not be read
	Unanswered uint64 // the most that a link had of QoS 1 and 2
}

// room reports whether one more loose message of so many bytes may wait. in.mu
// is held.
func (in *Intake) room(size int) bool {
	if most := in.c.QoS0Messages; most > 0 && in.loose.messages >= most {
		return false
	}
	most := in.c.QoS0Bytes
	return most <= 0 || in.loose.messages == 0 || in.loose.bytes+int64(size) <= most
}

func (l *loose) add(size int) {
	l.messages++
	l.bytes += int64(size)
}

func (l *loose) remove(size int) {
	l.messages--
	l.bytes -= int64(size)
}
