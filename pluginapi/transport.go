// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/core"
)

// Transport is a kind of transport. Both methods return at once and do no I/O.
type Transport interface {
	// Describe says what the transport is; it returns the same every time.
	Describe() Spec
	// Configure binds settings to one endpoint. It is called once per process.
	// A *Fault with diagnostics points at the fields that are wrong.
	Configure(s Settings) (Endpoint, error)
}

// Endpoint is a configured transport that is not connected yet.
type Endpoint interface {
	// Inspect sees all registrations and destinations of the endpoint at once
	// and says what each can do and what is refused. It does no I/O and may be
	// called several times; the last answer counts. Those whose options do not
	// fit the schema are not among them.
	Inspect(u Usage) Inspection
	// Connect opens what the registrations need. resume is what the last
	// generation handed over, nil for the first. ctx bounds Connect alone: the
	// connection outlives it. A failed Connect may be called again.
	Connect(ctx context.Context, resume []byte) (Conn, error)
}

// Conn is a connected endpoint. Its methods may be called from any goroutine.
type Conn interface {
	// Subscribe opens one registration, at most once at a time. Nothing may be
	// received before the first Receive. ctx ends with the subscription's stream.
	Subscribe(ctx context.Context, r Registration) (Subscription, error)
	// Publish takes messages in order and calls done once for each, from any
	// goroutine, before or after it returns. It is called by one goroutine at a
	// time. A blocked destination must not hold up others. The bytes of the
	// messages are valid until their done is called, their strings may be kept. A
	// message whose done is not called by the end of Close has an unknown receipt;
	// further calls are ignored.
	Publish(ctx context.Context, msgs []Outgoing, done func(i int, r Receipt))
	// Close stops intake, flushes accepted publishes and given verdicts within
	// ctx, and returns resume bytes for the next generation; at the end of ctx it
	// returns them with ctx's error or without one. It sends no verdict of its own.
	// [HostGone] tells of ctx whether a host has asked for it.
	Close(ctx context.Context) (resume []byte, err error)
}

// Subscription delivers. Receive and Settle run beside each other; each is
// called by one goroutine at a time.
type Subscription interface {
	// Profiles are the capability sets of its deliveries. They may be narrower
	// than what Inspect said, never wider. It is called once.
	Profiles() []core.Capabilities
	// Receive blocks until there is at least one thing to report or ctx ends,
	// and returns ctx's error then, beside what it has taken already. At a stop
	// it has five seconds for that; what comes later is not passed on and stays
	// unsettled. It returns no more deliveries than room allows; with a room of 0
	// messages it waits for voids, reports and the end alone. io.EOF ends the
	// subscription, any other error ends it with that cause; what is in the batch
	// comes first.
	Receive(ctx context.Context, room Room) (Batch, error)
	// Settle carries out verdicts in order and returns a result for each. It
	// does not wait for delays. Its verdicts fit the deliveries' profiles and
	// are acks, requeues, rejects and extends; see Releaser for releases. A
	// delivery that is not there any more is ResultStale. ctx ends when the host
	// is gone: what has not left by then stays unsettled.
	Settle(ctx context.Context, vs []Verdict) []Result
	// Close ends the subscription, once Receive and Settle have returned.
	// Unsettled deliveries stay as Unsettled says.
	Close(ctx context.Context) error
}

// Requester is a Conn that can send a request and wait for its reply. The Spec
// announces it with Requests.
type Requester interface {
	Request(ctx context.Context, m Outgoing) (core.Message, error)
}

// Seeker is a Subscription that can move its position. The Spec announces it
// with Seeks. Seek runs between two calls of Receive and between two of Settle,
// behind the verdicts that were given before it was asked for; its ctx ends after a
// minute. What was received before and is unsettled becomes void: behind it neither
// Settle nor AckLate names it any more, and what Settle has taken over and not sent
// yet has to be sent or dropped by Seek. After an error the position is as before,
// unless it is a [*PartlyMovedError].
type Seeker interface {
	Seek(ctx context.Context, to Position) error
}

// PartlyMovedError is a Seek that has failed, where some scopes of the subscription have
// moved all the same, or may have. The host tells its caller so.
type PartlyMovedError struct {
	Err error // why it has failed
}

// Error is the reason's text.
func (e *PartlyMovedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *PartlyMovedError) Unwrap() error { return e.Err }

// LinkReporter is a Conn that reports the state of its connection to the
// transport. The Spec announces it with LinkStates. report may be called from
// any goroutine until Close returns.
type LinkReporter interface {
	ReportLink(report func(LinkState))
}

// Resumer is a Conn whose resume bytes change while it runs. keep is called
// with each new value, since a crash never calls Close.
type Resumer interface {
	ReportResume(keep func(resume []byte))
}

// Addresser is a Conn of a transport that listens. Addresses says where, with the
// ports that were chosen: what others dial, "tcp://127.0.0.1:40913". It is asked
// once, after Connect. The service gets at most 64 of them, of at most 1,024
// bytes of printable text each; what is more, or no such text, is left out and
// logged as an error.
type Addresser interface {
	Addresses() []string
}

// LinkState is the state of an endpoint's connection to its transport.
type LinkState struct {
	Up     bool
	Reason string // one line, "" when up
}

// Spec describes a transport.
type Spec struct {
	Name         string // as in the binary's name
	Version      string
	NeverRestart bool // a crash ends the endpoint
	WantsStdio   bool // the endpoint must be attached with the host's stdin and stdout

	Settings     Schema // of an endpoint, see SchemaOf
	Subscription Schema // options of a subscription
	Publish      Schema // options of one message

	// Ceilings are the widest sets that any subscription can have: each profile
	// lies within one of them. Single and cumulative acks, the two rejects, and
	// the values of Unsettled but lost do not include each other; any Address
	// stands for "can have one of its own". Publishing is the widest that any
	// destination can have.
	Ceilings   []core.Capabilities
	Publishing core.Publishing

	Requests   bool // Conn is a Requester
	Seeks      bool // Subscription is a Seeker
	LinkStates bool // Conn is a LinkReporter
}

// Usage is all that a host wants of one endpoint.
type Usage struct {
	Registrations []Registration
	Destinations  []Target
}

// Registration is one subscription and what is declared for it.
type Registration struct {
	ID         uint32 // index in Usage
	Name       string // what to read: a topic, key, queue or filter
	Options    Options
	Attempts   uint32        // MaxAttempts, 0 = none
	DeadLetter string        // the dead letter, "" = none; "name@endpoint" on another endpoint
	RetryTo    string        // as DeadLetter
	Backoff    time.Duration // longest delay of a declared Backoff
	Elapsed    time.Duration // MaxElapsed: time in which a message is tried, 0 = no limit
	Batch      bool          // handled in batches
	Decoded    bool          // handled with a codec
}

// Target is a destination that the host may publish to.
type Target struct {
	Name    string
	Purpose Purpose  // why; a destination used for several purposes appears once for each
	For     []uint32 // ids of the registrations that use it, for copies and dead letters
	Options Options
}

// Inspection answers Usage, index by index.
type Inspection struct {
	Registrations []RegistrationReport
	Destinations  []TargetReport
	Findings      []Finding // about the endpoint as a whole
}

// RegistrationReport is what one registration can do: at least one profile, or
// a finding that refuses it.
type RegistrationReport struct {
	Profiles []core.Capabilities
	Shares   []uint32 // ids of registrations that share its intake
	Findings []Finding
}

// TargetReport is what one destination can do.
type TargetReport struct {
	Publishing core.Publishing
	ReturnsTo  []uint32 // ids of registrations of this endpoint that would receive it
	Exactly    []uint32 // those of ReturnsTo that read exactly this name, not a pattern
	Findings   []Finding
}

// Finding is a refusal or a warning at start.
type Finding struct {
	Warning bool   // does not refuse
	Option  string // the option or setting that is wrong, by its field path
	Message string
	Fix     string
}

// Purpose says why a message is published.
type Purpose uint8

// The purposes.
const (
	PurposeUnspecified Purpose = iota
	PurposeApplication         // by the service
	PurposeRetry               // a copy below the cap
	PurposeDeadLetter          // a dead letter
	PurposeReply               // a reply
)

// Outgoing is a message to publish.
type Outgoing struct {
	Message      core.Message
	Purpose      Purpose
	Carry        []byte        // of the delivery that a copy or dead letter stems from
	DeliverAfter time.Duration // the transport delivers it later
	DedupID      string        // "" = none
	Options      Options
}

// ReceiptStatus is what became of a publish.
type ReceiptStatus uint8

// The receipt's three values.
const (
	ReceiptUnspecified ReceiptStatus = iota
	ReceiptConfirmed                 // as the destination's Confirms says
	ReceiptRefused                   // not sent, and why; Fault.Transient says whether to try again
	ReceiptUnknown                   // perhaps sent
)

// Receipt answers one Outgoing.
type Receipt struct {
	Status   ReceiptStatus
	Fault    *core.Fault // of refused and unknown ones
	Unrouted bool        // accepted, but nobody reads it
	Position []byte
}

// Room is what Receive may return. Bytes is soft: it is exceeded by one
// message at most.
type Room struct {
	Messages int
	Bytes    int64
}

// Batch is what Receive reports, in this order: voids, reports, deliveries,
// then caught up.
type Batch struct {
	Voids      []Void
	Reports    []Report
	Deliveries []Delivery
	CaughtUp   bool // all there is has been delivered; the subscription stays open
	// Memory is what the deliveries lie in, where it can be used again. See
	// [Memory].
	Memory Memory
}

// Memory is what byte slices and lists of headers of a batch lie in. Release is
// called at most once, from any goroutine, when all of the batch has been written
// to a host: the transport may write there again. It does not block. Where that
// memory is a host's, as it is in the same process, or the batch is not passed on
// whole, Release is never called.
type Memory interface{ Release() }

// Delivery is one message received.
type Delivery struct {
	Handle  any // the transport's own, another one for each delivery; comes back in the Verdict
	Message core.Message
	// Attempt is the source's own count, first delivery = 1. Where the profile
	// says that the source counts, 0 ends the subscription with a fault; where it
	// does not, whatever stands here is passed on as 0.
	Attempt     uint32
	Profile     uint32 // index into Profiles
	Scope       string // partition or session; order, cumulative acks and voids go by it
	Identity    []byte // the same on every redelivery; nil = none
	Position    []byte // for Seek
	Carry       []byte // comes back on copies and dead letters
	PublishedAt time.Time
	// Undecodable is why the transport itself could not read the message.
	Undecodable *core.Fault
}

// Void says that deliveries ended without a verdict.
type Void struct {
	Handles []any  // these, or
	Scope   string // all of this scope, or
	All     bool   // all of the subscription
	Returns bool   // they come back
}

// Report is an error that is bound to no delivery. The subscription goes on.
type Report struct {
	Fault    *core.Fault
	Position string // where, for people: a line number, an offset
}

// Verdict is what is decided of a delivery.
type Verdict struct {
	Handle any
	Kind   core.VerdictKind
	Delay  time.Duration // of a requeue
	Hold   time.Duration // of an extend
	Reason string        // of a reject

	id uint64 // of the delivery, for wrappers of this package
}

// ResultStatus is what became of a verdict.
type ResultStatus uint8

// The results of verdicts.
const (
	ResultUnspecified ResultStatus = iota
	ResultDone                     // accepted
	ResultStale                    // too late: the delivery is not there any more
	ResultUnsupported              // not among the capabilities
	ResultFailed                   // could not be carried out; see Fault

	// resultLater is Held's: accepted later, see laterAccepter.
	resultLater ResultStatus = 255
)

// Result answers one Verdict.
type Result struct {
	Status ResultStatus
	Fault  *core.Fault
}

// PositionKind says where a subscription seeks to.
type PositionKind uint8

// The kinds of positions.
const (
	PositionUnspecified PositionKind = iota
	PositionBeginning
	PositionEnd
	PositionTime  // Time
	PositionExact // Value, from a Delivery
)

// Position is a place to seek to.
type Position struct {
	Kind  PositionKind
	Time  time.Time
	Value []byte
}

// Fault is the error of the contract; it crosses the process boundary whole.
type Fault = core.Fault
