// SPDX-License-Identifier: Apache-2.0

// Package wire is the protocol between the memory broker in a test process and
// the memory transport in a plugin process: length-limited binary frames over
// one socket, which carry messages, verdicts and receipts as well as faults on
// command.
package wire

import (
	"time"

	"github.com/longshore-go/longshore/core"
)

// Kind says what a frame is.
type Kind uint8

// The kinds a plugin sends.
const (
	_           Kind = iota
	Hello            // opens a connection: Text endpoint, Data session, Num pid, Num2 generation
	At               // a point is reached: Text point, Name what; answered by Reply
	Subscribe        // Sub, Name, Profiles, Flag identities; answered by Reply
	Unsubscribe      // Sub, Items what was delivered and never handed on; answered by Reply
	Want             // Sub, Num handed on so far, Num2 and Num3 the totals of messages and bytes that may be delivered
	Settle           // Sub, Items verdicts; each answered by a Results item
	Publish          // Items; each answered by a Receipts item
	Request          // one Item; answered by Reply with an Item
	Seek             // Sub, Num position kind, Num2 time, Data value; answered by Reply
	Bye              // orderly end; answered by Reply
	Done             // answers Do, Fault where it failed
	Handed           // Sub, Num handed on so far, Flag nothing more is; the broker only takes note
	Released         // Sub, Items deliveries that the plugin has forgotten; the broker only takes note
)

// The kinds a broker sends.
const (
	Welcome  Kind = iota + 64 // Data session, Flag resumed
	Deliver                   // Sub, Items
	Voided                    // Sub, Items, or Text scope, or Flag all; Flag2 returns
	Report                    // Sub, Fault, Text position
	CaughtUp                  // Sub
	End                       // Sub, Fault
	Reply                     // answers by Req: Fault, Items
	Results                   // Sub, Items
	Receipts                  // Items
	Do                        // Text command, Num, Num2, Name; answered by Done
)

// The limits of what a frame may hold.
const (
	MaxFrame   = 66 << 20 // bytes, one message of the protocol's largest size and its fields
	MaxItems   = 4096
	MaxHeaders = 1 << 16
)

// Frame is one message of the protocol. Which fields count depends on Kind.
type Frame struct {
	Kind     Kind
	Req      uint64 // pairs an answer with its question
	Sub      uint32
	Num      int64
	Num2     int64
	Num3     int64
	Flag     bool
	Flag2    bool
	Text     string
	Name     string
	Data     []byte
	Fault    *core.Fault
	Profiles []core.Capabilities
	Items    []Item
}

// Item is one delivery, verdict, result, message or receipt.
type Item struct {
	ID       uint64
	Kind     uint8  // verdict, purpose, or status
	Attempt  uint32 // of a delivery
	Profile  uint32
	Flag     bool // a receipt is unrouted
	Retain   uint8
	Dedup    bool
	Name     string
	Headers  core.Headers
	Payload  []byte
	Scope    string
	Identity []byte
	Position []byte
	Carry    []byte
	Options  []byte
	Text     string // reason of a reject, dedup id of a publish
	Dur      time.Duration
	Time     int64 // nanoseconds since 1970, 0 = unknown
	Fault    *core.Fault
}

// The statuses of results and receipts.
const (
	StatusDone uint8 = iota + 1
	StatusStale
	StatusUnsupported
	StatusFailed
	StatusConfirmed
	StatusRefused
	StatusUnknown
)
