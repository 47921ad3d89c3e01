// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"github.com/longshore-go/longshore/core"
)

// Message is a message as the broker has it. A test that publishes sets
// Payload, and what else it wants of Headers, Scope, Profile and Undecodable.
type Message struct {
	ID      uint64 // rising over the broker; the identity of its deliveries
	Queue   string
	Headers core.Headers
	Payload []byte
	Scope   string // partition; by default the header partition-key
	Profile uint32 // which profile of its subscription it is delivered under
	As      string // the name that it is delivered under, "" = its queue's
	// Undecodable makes the transport say that it could not be read.
	Undecodable *core.Fault

	// By is the endpoint that published it, "" = the test. What follows is what
	// came with it from there.
	By           string
	Purpose      uint8 // pluginapi.Purpose
	Carry        []byte
	DedupID      string
	DeliverAfter time.Duration
	Options      []byte
	PublishedAt  time.Time

	// Twin is the message that it doubles, see Double; 0 = none.
	Twin uint64
}

// Text returns a message with this payload.
func Text(payload string) Message { return Message{Payload: []byte(payload)} }

// Header returns the last header of that name, ignoring the case of letters,
// and whether there is one.
func (m Message) Header(name string) (string, bool) {
	v, ok := m.Headers.Get(name)
	return string(v), ok
}

// State is where a message is.
type State uint8

// The states.
const (
	Queued       State = iota // at the broker, ready or waiting for its time
	Outstanding               // delivered, no verdict yet
	Acked                     // settled by an ack
	Rejected                  // settled by a reject that drops
	DeadLettered              // settled by a reject; it went on as a new message
	Sent                      // delivered by a source without acks
	Lost                      // gone without having been settled
)

// String returns the state in words.
func (s State) String() string {
	return [...]string{"queued", "outstanding", "acked", "rejected", "dead-lettered", "sent", "lost"}[s]
}

// Settlement is a message and how it ended.
type Settlement struct {
	Message
	State      State
	Deliveries uint32 // how often it was delivered
	Astray     bool   // outstanding, and its delivery was lost on the way
	Forgotten  bool   // outstanding, and no verdict will come
	Waits      bool   // queued, and waits for its time
	Reason     string // of a reject; of a loss, why
}
