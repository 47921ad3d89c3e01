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
	Unkeyed     error       // LaneOptions.Key failed: what the handler is told in place of a run
	Snoozes     int         // how often Said.Snooze has put it off
	Returned    uint32      // how often it came back under Policy.Backoff without a count of anybody's, as far as is remembered
	Value       any         // what Batch.Open made of it, for Batch.Handle
}

// Said is what a handler said.
type Said struct {
	Outcome core.Outcome
	Err     error  // the cause, for the log and the dead letter
	Stack   string // of a panic
	Thrown  string // by a panic, for the log; "" = Err says it
	// Spent says that no attempt is left: Outcome, a retry, is one at the cap.
	Spent bool
	// Publishes are confirmed before Outcome holds. All of them are looked at
	// before any leaves: where one is too large, not text where it has to be, or
	// its endpoint is down or not attached, none does. They are handed over in
	// order before the lane's next delivery starts, each is tried once, and their
	// receipts are awaited off the worker, until the lane's PublishLimit.
	Publishes []Publish
	// Failed says what holds instead where one of Publishes was not confirmed; the
	// others stay sent. err is the *PublishError of the first. A receipt that says
	// neither counts as confirmed on sources without acks, and as not confirmed on
	// others. nil is a retry, with CauseReplyFailed where a reply failed.
	Failed func(d *Delivery, err error) Said
	// Snooze says that the delivery stays as it is for Outcome.After and is
	// handled again then, uncounted. Outcome, a retry later, holds where the
	// lane's bounds or the source's hold do not allow it.
	Snooze bool
}

// Publish is a publish that an outcome depends on. The message may borrow from
// the delivery, which stays valid until Failed has returned or every receipt is
// in.
type Publish struct {
	To           core.Destination
	Message      core.Message
	Purpose      uint8  // transportpb.Purpose
	Type         string // of the value, for the log
	WithCarry    bool   // the delivery's carry goes with it
	Options      []byte
	DedupID      string
	DeliverAfter time.Duration
}

// Batch handles several deliveries in one call.
type Batch struct {
	Max  int           // deliveries a call; 1 or more
	Wait time.Duration // from a batch's first delivery on until it is handled, full or not
	// Open decodes one delivery, keeps what it made in d.Value, and reports true;
	// false says that said holds and that the delivery is no part of a batch. It
	// never panics.
	Open func(ctx context.Context, d *Delivery) (said Said, ok bool)
	// Handle fills said, which has one entry for each of ds. It returns how many
	// outcomes the user's function gave, -1 where it gave no list at all; a number
	// that is not len(ds) is told (L-LEN). It never panics.
	Handle func(ctx context.Context, ds []*Delivery, said []Said) (outcomes int)
	// Exited is LaneOptions.Exited of a batch.
	Exited func(ctx context.Context, ds []*Delivery, said []Said)
}

// Circuit describes a lane's circuit breaker. It opens when at least Share of
// the last Of outcomes were failures, and pauses intake for Pause, doubled each
// time that the probes after it fail, at most Longest. Probes are handled one
// by one; Probes of them in a row without a failure close it.
type Circuit struct {
	Share   float64 // above 0, at most 1
	Of      int
	Pause   time.Duration
	Longest time.Duration
	Probes  int
}

// Finished is a delivery whose settlement is over.
type Finished struct {
	// Delivery has no Value, and no Message, Scope, Identity and Position unless
	// Keep asked for them. Those may be kept, and must not be changed.
	Delivery Delivery
	Said     Said          // without Publishes and Failed; nothing where Over
	Over     bool          // its native count was over the cap: nothing was run
	Plan     *core.Plan    // valid for the call; nil where a stop has cut it off before there was one
	Result   Result        // what became of it
	Lost     bool          // it is lost, which L-LOST, L-UNR or L-ABND says
	Took     time.Duration // from its arrival to the end of its settlement
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

	// Batch, when set, handles deliveries instead of Handle.
	Batch *Batch
	// Workers is how many deliveries, or batches, are handled at a time; 0 = 1.
	Workers int
	// Key, when set, gives the key within which deliveries are begun one after
	// the other in the order they came; "" = none. It is called by the stream's
	// reader. Without it several workers begin deliveries in order and end them
	// in any.
	Key func(m *core.Message) (string, error)
	// KeyHeader, when set, is Key with the last value of this header. It is for the
	// lane to read, which costs no memory.
	KeyHeader string
	// Pace is asked before a delivery is begun. 0 allows it and counts it, else it
	// is how long until it is worth to ask again.
	Pace func(now time.Time) time.Duration
	// Circuit, when set, pauses intake while too many deliveries fail.
	Circuit *Circuit
	// Paused lets the lane begin without credit; see Pause and Resume.
	Paused bool
	// SnoozeLimit and SnoozeTotal bound how often and how long one delivery is put
	// off by Said.Snooze.
	SnoozeLimit int
	SnoozeTotal time.Duration
	// Finished, when set, is called once for each delivery that was begun, when its
	// settlement is over, whether or not its verdict went through: at once where
	// nobody waits for the answer, of a copy that waits when it is published, parked
	// or lost. It is called by any goroutine, several at a time, without a lock, and
	// must not block. Drain and Waiting.Drain return after the last call, but for
	// those of handlers that did not return in time.
	Finished func(f *Finished)
	// Keep says of what was said, nothing where the native count is over the cap, and
	// of the plan whether Finished gets a clone of the message; nil = no. It is called
	// by any goroutine and must not block.
	Keep func(said *Said, p *core.Plan) bool

	// MaxElapsed, when set, is how long after a message's first failure a further
	// one is treated as one at the cap. Policy.Elapsed says so as well.
	MaxElapsed time.Duration
	// MaxElapsedAt is where it was declared, for people.
	MaxElapsedAt string

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
	// Answered, when set, is called with each publish and its receipt, and how long
	// that took since the publish was handed over. It must not block.
	Answered func(out *frame.Outgoing, r frame.Receipt, took time.Duration)
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
