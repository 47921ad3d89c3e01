// SPDX-License-Identifier: Apache-2.0

// Package settlement carries out plans: it takes deliveries off a
// subscription's stream, runs the handler, decides, and executes each step of
// the plan with its receipts, waits, verdicts and log lines.
//
// A Lane is one subscription over all generations of its plugin, an Outbox is
// the publish side of one endpoint, Waiting holds the delayed copies of a host.
package settlement

import (
	"context"
	"log/slog"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
)

// Delivery is one message on its way through a handler. It and all that it
// points to are valid until the handler returns.
type Delivery struct {
	Message     core.Message // without x-longshore-journal
	Attempt     core.Attempt
	Number      uint64 // what the handler sees: 1 = first, 0 = unknown
	Last        bool   // the cap is reached with this attempt
	Scope       string
	Identity    []byte
	Position    []byte
	Published   time.Time // zero = unknown
	Received    time.Time
	Undecodable *core.Fault // the transport itself could not read it
}

// Said is what a handler said.
type Said struct {
	Outcome core.Outcome
	Err     error  // the cause, for the log and the dead letter
	Stack   string // of a panic
	Thrown  string // by a panic, for the log; "" = Err says it
	// Forward, when set, must be published before the outcome holds.
	Forward *Forward
}

// Forward is a publish that an outcome depends on. It is handed to its outbox
// before the lane's next delivery starts and its receipt is awaited off the
// worker. It is tried once. The message may borrow from the delivery, which
// stays valid until Failed was called or the receipt is in.
type Forward struct {
	To      core.Destination
	Message core.Message
	Purpose uint8  // transportpb.Purpose
	Carry   []byte // of the delivery, for replies; nil = none
	Options []byte
	// Failed says what is decided when the publish was not confirmed. A receipt
	// that says neither counts as confirmed on sources without acks, and as not
	// confirmed on others.
	Failed func(d *Delivery, err error) Said
}

// Handler decodes and runs one delivery. It never panics: what the user's code
// throws comes back as CausePanic. Backoff and jitter are applied by it: a
// plain retry under a Backoff comes back as OutcomeRetryAfter.
type Handler func(ctx context.Context, d *Delivery) Said

// Journal keeps copies and messages over the end of the process. Its methods
// may be called from any goroutine; what they are given is theirs to keep only
// as a clone. The host package exports it as host.Journal.
type Journal interface {
	// Store keeps a copy that is due in delay and returns its row.
	Store(ctx context.Context, c Copy, delay time.Duration) (row string, err error)
	// Forget removes a row: at the copy's receipt, or when the copy's own
	// delivery is settled. A row that is not there is no error.
	Forget(ctx context.Context, row string) error
	// Park keeps a message that could not be published. row is the copy's own
	// row when it was stored before, "" else; a stored row becomes the parked
	// one.
	Park(ctx context.Context, c Copy, row string, reason string) error
	// Due returns stored copies of former runs with what is left of their
	// delay, oldest first, at most n. Each is returned once while the journal is
	// open; fewer than n are the last.
	Due(ctx context.Context, n int) ([]Row, error)
}

// Copy is a message that the runtime publishes.
type Copy struct {
	To           core.Destination
	Message      core.Message
	Purpose      uint8 // transportpb.Purpose
	Carry        []byte
	Endpoint     string // where the delivery was read
	Subscription string
}

// Row is a stored copy.
type Row struct {
	ID    string
	Copy  Copy
	Delay time.Duration // until it is due; 0 or less = now
}

// LaneOptions describe one subscription.
type LaneOptions struct {
	Endpoint     string
	Subscription string
	Logger       *slog.Logger
	Policy       core.Policy
	Handle       Handler
	// Exited says what it means that Handle has ended its goroutine with
	// runtime.Goexit; it runs on the worker that takes over. nil = a retry with
	// CausePanic and ErrExited.
	Exited Handler

	// Retry gives the destination of copies for one delivery; it is called only
	// where Policy.RetryTo is set by a function, otherwise To is used. A
	// destination that nothing can carry gives a route in state refused.
	RetryTo   core.Route // state none: no destination
	RetryFunc func(d *Delivery) (core.Route, error)
	Dead      core.Route
	// Cause turns D7's headers on for dead letters.
	Causes bool

	NoFloor bool          // Floor(0)
	Floor   time.Duration // what D17's floor grows to; 0 = 1 s
	Window  frame.Credit  // 0 = by the profiles: 64, or 1024 and 8 MiB

	Outboxes func(endpoint string) *Outbox // of every attached endpoint
	Waiting  *Waiting
	Journal  Journal // nil = none

	PublishLimit time.Duration // D2, default 60 s
	// Failed is called once when a plan says STOP.
	Failed func(err error)
	// Broken is called when a generation's stream ended without an orderly end
	// or broke the protocol. The lane has detached it by then.
	Broken func(generation uint64, cause error)
	// Changed is called after State may have changed: attached, ended, caught
	// up, lost, nothing in work. It must not block.
	Changed func()
	// Observe, when set, sees each plan and the steps as they were carried out;
	// tests compare them.
	Observe func(c *core.Case, p *core.Plan, trace []Traced)
}

// Traced is one executed step and its result.
type Traced = core.Done

// OutboxOptions describe the publish side of one endpoint.
type OutboxOptions struct {
	Endpoint string
	Logger   *slog.Logger
	Messages int   // missing receipts, default 1024; a quarter is kept for copies and dead letters
	Bytes    int64 // default 8 MiB
	// Broken is called when a generation's stream ended without an orderly end
	// or broke the protocol. The outbox has detached it by then.
	Broken func(generation uint64, cause error)
}

// Attachment is one generation's stream for a lane. Start was sent and Started
// was received; nothing else.
type Attachment struct {
	Stream   link.SubscribeStream
	Cancel   context.CancelFunc // ends the stream's context
	Profiles []core.Capabilities
	Plugin   string
	Number   uint64 // generation
}
