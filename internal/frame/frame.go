// SPDX-License-Identifier: Apache-2.0

// Package frame holds the hot messages of the plugin protocol as plain structs
// with a pooled codec of their own: deliveries, verdicts, publishes and
// receipts. Their wire form is the protobuf of
// pluginapi/proto/longshore/transport/v1; everything else travels as generated
// code.
package frame

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// SubscribeRequest is one message of the host on a subscription's stream.
// Exactly one part is set.
type SubscribeRequest struct {
	Start  *transportpb.SubscribeStart
	Credit *Credit
	Settle []VerdictRun
	Seek   *transportpb.Seek
	Stop   bool
}

// Credit is an absolute window over unsettled deliveries.
type Credit struct {
	Messages uint64
	Bytes    uint64
}

// VerdictRun decides Count consecutive deliveries alike.
type VerdictRun struct {
	First      uint64
	Count      uint64 // 0 is read as 1
	Kind       core.VerdictKind
	Delay      time.Duration
	Hold       time.Duration
	Reason     string
	WantResult bool
}

// SubscribeResponse is one message of the plugin on a subscription's stream.
// Exactly one part is set.
type SubscribeResponse struct {
	Started    *transportpb.Started
	Deliveries *Deliveries
	Settled    []SettleResult
	Void       *transportpb.Void
	Sought     *transportpb.Sought
	CaughtUp   bool
	Report     *transportpb.Report
	Ended      *transportpb.Ended
}

// Delivery is one message received. Decoded from the wire, its bytes lie in the
// frame's slab and are valid until the frame is released; its strings may be
// kept.
type Delivery struct {
	ID          uint64
	Message     core.Message
	Attempt     uint32
	Profile     uint32
	Scope       string
	Identity    []byte
	Position    []byte
	Carry       []byte
	PublishedAt int64 // nanoseconds since 1970, 0 = unknown
	Undecodable *core.Fault
}

// SettleResult is the result of Count verdicts.
type SettleResult struct {
	First  uint64
	Count  uint64 // 0 is read as 1
	Status SettleStatus
	Fault  *core.Fault
}

// SettleStatus is what became of a verdict; the numbers are the protocol's.
type SettleStatus uint8

// The statuses.
const (
	SettleUnspecified SettleStatus = iota
	SettleDone
	SettleStale
	SettleUnsupported
	SettleFailed
)

// Outgoing is a message to publish.
type Outgoing struct {
	ID           uint64
	Message      core.Message
	Purpose      uint8 // transportpb.Purpose
	Carry        []byte
	DeliverAfter time.Duration
	DedupID      string
	Options      []byte // one JSON object, nil = none
}

// Receipt answers one Outgoing.
type Receipt struct {
	ID       uint64
	Status   ReceiptStatus
	Fault    *core.Fault
	Unrouted bool
	Position []byte
}

// ReceiptStatus is what became of a publish; the numbers are the protocol's.
type ReceiptStatus uint8

// The statuses.
const (
	ReceiptUnspecified ReceiptStatus = iota
	ReceiptConfirmed
	ReceiptRefused
	ReceiptUnknown
)
