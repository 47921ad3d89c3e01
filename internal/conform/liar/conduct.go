// SPDX-License-Identifier: Apache-2.0

package liar

import (
	"time"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// Conduct is how the plugin behaves where it could lie. The zero value is
// honest; a nil function changes nothing.
type Conduct struct {
	Process
	Calls
	Storing
	Delivering
	Settling
	Keeping
}

// Process is conduct beside the calls.
type Process struct {
	AnyCookie    bool // serves without the cookie
	AnyVersion   bool // serves hosts of other protocol versions
	TakesSignals bool // dies of TERM
	IgnoresLeash bool // goes on at the end of standard input, for LeashLie
	LeavesChild  bool // starts a child in a session of its own
	ExitsOnClose bool // exits behind Close by itself
	Newest       bool // announces the newest version that the host speaks
	KeepsRunDir  bool // leaves the folder of its generation behind
	Noisy        bool // prints to standard output behind the handshake
	CutsLog      bool // writes long records of its log as several lines
	LogsSecrets  bool // logs its settings
	Leaks        bool // keeps a descriptor and 64 KiB a subscription
	LeaksCut     bool // keeps a descriptor of each subscription that is cancelled
	MissesBeats  bool // answers no beat while a subscription waits for messages
	// Beat is the number that answers a beat.
	Beat func(n uint64) uint64
	// NoLink reports no link state.
	NoLink bool
}

// LeashLie is how long a plugin lives on whose host is gone, or a child of it:
// beyond any limit of the suite, and so that tests leave nothing behind for long.
const LeashLie = 2 * time.Minute

// Calls is conduct in unary calls.
type Calls struct {
	DescribeTakes time.Duration
	Describe      func(r *pb.DescribeResponse, call int) // call counts from 1
	ConfigureIO   bool                                   // opens a file and a socket in Configure
	InspectIO     bool                                   // opens a file and a socket in Inspect
	TakesUnknown  bool                                   // accepts fields that there are not
	Diagnostics   func(ds []*pb.Diagnostic) []*pb.Diagnostic
	Inspect       func(r *pb.InspectResponse)
	Started       func(s *pb.Started)
	Repeatable    bool // Configure, Connect and streams may come again
	AnswersAll    bool // answers requests and seeks, which it does not serve
}

// Storing is conduct of the publish stream.
type Storing struct {
	// Keep is what is stored in place of a message; nil = nothing, confirmed all
	// the same.
	Keep        func(o *pb.Outgoing) *pb.Outgoing
	NoLimits    bool          // a message over a limit is confirmed and dropped
	NoDelays    bool          // deliver_after is ignored
	NoDedup     bool          // dedup_id is ignored
	Copies      int           // beyond the first one
	StoresAfter time.Duration // behind the receipt
	LosesLast   bool          // what is not stored yet at the end of the stream or at Close is lost
	FirstAlone  bool          // of a frame the first message alone is stored, and all are confirmed
	WaitsUnread bool          // a queue of 500 unread messages takes no more
	HangsHalf   bool          // the stream does not end behind the host's half-close
	StallsAll   bool          // a stalled destination blocks the others
	Receipts    func(rs []*pb.Receipt) []*pb.Receipt
}

// Delivering is conduct of intake.
type Delivering struct {
	Window       func(c *pb.Credit) *pb.Credit
	BeforeCredit bool // sends one delivery before there is a window
	AfterStop    bool // sends behind Ended
	NoEnded      bool // a stop is not answered with Ended
	EndedFault   bool // Ended has a fault behind a stop
	OpensOnce    bool // a registration cannot be opened a second time
	SpendsCut    bool // a registration whose stream was cancelled cannot be opened again
	StopsAll     bool // a stop ends every other subscription's intake too
	Strict       bool // sends nothing that is larger than the bytes that are left
	CaughtUp     bool // says that it has caught up behind each frame
	DoublesCut   bool // what was unsettled on a cancelled stream comes twice
	// ID is the id of the next delivery, where next is the right one.
	ID        func(next uint64, unsettled int) uint64
	FrameSize int                       // messages a frame; 0 = as the protocol says
	Attempt   func(n uint32) uint32     // the count that is sent
	Deliver   func(d *pb.Delivery)      // changes what is sent
	Swaps     bool                      // takes every other two messages in the wrong order
	Void      func(v *pb.Void) *pb.Void // nil = none is sent
	LosesVoid bool                      // what is void does not come back
	VoidsLate time.Duration             // behind what comes again
}

// Settling is conduct of verdicts.
type Settling struct {
	// Effect is what is carried out in place of a verdict.
	Effect func(k pb.VerdictKind) pb.VerdictKind
	// Status is the answer in place of the right one; unspecified: none is sent.
	Status func(r *pb.VerdictRun, s pb.SettleStatus) pb.SettleStatus
	// Late answers verdicts of deliveries that were sent and are not there.
	Late        func(k pb.VerdictKind) pb.SettleStatus
	TakesNext   bool          // an ack takes the next unsettled delivery along
	Waits       bool          // verdicts wait while the subscription waits for messages
	KeepsCredit bool          // RELEASE returns no credit
	VoidKeeps   bool          // void deliveries return no credit
	DropsLast   bool          // verdicts behind Ended are answered DONE and not carried out
	Former      bool          // an ack settles what had the id on a cancelled stream
	InOrder     bool          // an ack before that of an older delivery is answered DONE and forgotten
	Unasked     bool          // DONE is answered where nobody asked
	AcksUnknown bool          // a verdict that there is not settles the message
	Stretch     time.Duration // factor of delays of REQUEUE; 0 = 1
	// Holds is how long a hold is in truth: 0 = as said, negative = it never ends.
	Holds         time.Duration
	IgnoresExtend bool           // EXTEND is answered DONE and changes nothing
	AnyHold       bool           // EXTEND takes any hold
	LazyRequeue   bool           // REQUEUE leaves the message to the end of its hold
	Reversed      bool           // results of a frame come in reverse order
	NoDelay       bool           // delays of REQUEUE are ignored
	SameCount     bool           // REQUEUE does not raise the count
	NoRewind      bool           // REQUEUE makes nothing else void
	RewindsAll    bool           // it makes void what stands before it too
	AtEnd         pb.VerdictKind // of what is unsettled at an orderly end; unspecified: none
}

// Keeping is conduct of what is kept over restarts.
type Keeping struct {
	ForgetsAcks    bool // what was settled comes back
	Recounts       bool // counts start again
	LosesUnsettled bool // what was unsettled does not come back
	Shares         bool // takes no lock: two processes read one folder
}
