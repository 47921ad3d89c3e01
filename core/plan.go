// SPDX-License-Identifier: Apache-2.0

package core

import (
	"strings"
	"time"
)

// RouteState says whether a destination can be published to.
type RouteState uint8

// The states of a route.
const (
	RouteNone    RouteState = iota // no destination
	RouteOpen                      // open
	RouteRefused                   // computed for this delivery and nothing can carry it
)

// Route is a destination as one decision sees it.
type Route struct {
	To       Destination
	Caps     Publishing
	State    RouteState
	Restarts bool // its plugin is started again after a crash
	Own      bool // on the subscription's own endpoint: its plugin and broker are the source's
}

// Case is everything one decision depends on.
type Case struct {
	Source  Capabilities
	Retry   Route // where copies go: RetryTo, else the own address
	Dead    Route // where dead letters go
	Attempt Attempt
	Outcome Outcome
	Held    time.Duration // time since the delivery was received
	Floor   time.Duration // least wait before a plain requeue (D17)
	Void    Void
	Spent   bool // no further attempt, whatever the count says: the time for attempts is over, or the error is one that is never retried
	Journal bool // a journal is there
	Full    bool // no room for another waiting copy (D3)
}

// Action is what a step does.
type Action uint8

// The actions. Log lines are steps too.
const (
	ActNone         Action = iota
	ActNoRun               // the handler is not called
	ActAck                 // verdict ack
	ActRequeue             // verdict requeue, after Delay when it is not 0
	ActReject              // verdict reject
	ActRelease             // verdict release
	ActHold                // stay unsettled for Delay, off the worker, keeping the credit; cut to 9/10 of MaxHold where it would reach one that cannot be prolonged
	ActKeep                // stay unsettled; the publish of Count to To is tried for the life of the process: confirmed, it is acked (L-DBL where that fails); at stop, released
	ActPublish             // publish to To now; Delay is what the destination itself waits
	ActPublishLater        // wait Delay, then publish to To
	ActStore               // store the copy in the journal, due in Delay
	ActForget              // remove its row
	ActForgetLater         // nothing now: the row is removed when the copy's own delivery is settled, found by JournalHeader
	ActPark                // keep the message in the journal as one that could not be published
	ActLog                 // write a line with Code at Level
	ActStop                // stop the host with the failure
)

// verdict reports whether a is a step after which the source's part is over.
func (a Action) verdict() bool {
	switch a {
	case ActAck, ActReject, ActRequeue, ActRelease, ActKeep:
		return true
	default:
		return false
	}
}

// Target says which of the case's routes a step publishes to.
type Target uint8

// The targets.
const (
	TargetNone Target = iota
	TargetRetry
	TargetDead
)

// LogLevel is the level of a log step.
type LogLevel uint8

// The levels of log steps.
const (
	LevelNone     LogLevel = iota
	LevelInfo              // info
	LevelWarn              // warn
	LevelWarnOnce          // warn for the first of its kind on the subscription, then counted and summarised
	LevelError             // error
)

// LogCode names a log line of reference 1.15.
type LogCode uint8

// The log codes.
const (
	LogNone      LogCode = iota
	LogUnsettled         // L-UNS: the outcome cannot be carried out by this source
	LogCapDead           // L-CAP-DL: cap reached, going to the dead letter
	LogCapReject         // L-CAP-RJ: cap reached, no dead letter
	LogLost              // L-LOST: a copy could not be published and is lost
	LogDelay             // L-DELAY: the delay cannot be honoured
	LogDecode            // L-DEC: undecodable
	LogPanic             // L-PAN: the handler panicked
	LogFailFast          // L-FF: the service stops
	LogReply             // L-REPLY: the reply could not be published
	LogStream            // L-STREAM: a receive error not bound to a message
	LogEnd               // L-END: the subscription ended
	LogLength            // L-LEN: outcome list of the wrong length
	LogDeclared          // L-DECL: something is declared
	LogAbandoned         // L-ABND: waiting copies cut off
	LogNack              // L-NACK: a requeue failed
	LogHeld              // L-HELD: deliveries that match no subscription
	LogError             // L-ERR: the handler returned an error
	LogCopy              // L-COPY: a copy could not be published; what was done instead
	LogDouble            // L-DBL: the ack failed after the copy was confirmed
	LogRefused           // L-REF: a computed destination was refused, or none is declared
	LogCheck             // L-CHECK: a finding at start that does not refuse
	LogCount             // L-COUNT: the count header is no number
	LogUnrouted          // L-UNR: a copy was taken by its destination, which nobody reads
)

// Step is one step of a plan.
type Step struct {
	Do    Action
	To    Target
	Level LogLevel
	Code  LogCode
	Else  uint8  // index of the step to go on with when this one fails; 0 = the plan ends
	Again bool   // an unknown receipt is sent again
	End   bool   // nothing follows
	Max   bool   // Delay is the longest there is; only printing asks
	Count uint64 // of a publish, store or park: the copy's count header
	Delay time.Duration
}

// MaxSteps is the most steps a plan has, jumps included.
const MaxSteps = 16

// Plan is the ordered steps that one outcome leads to. Plans are comparable.
type Plan struct {
	Steps [MaxSteps]Step
	N     uint8 // steps in use
	Notes Note
}

// Note is a set of remarks on a plan.
type Note uint8

// The notes.
const (
	NoteWindow  Note = 1 << iota // settled first, then waiting in memory: a crash in between loses the copy
	NoteCap                      // the cap is reached with this attempt
	NoteOverCap                  // the source's count is beyond the cap: the handler does not run
	NoteDelay                    // the delay asked for is not honoured
)

// noteWords are the words of the notes, in their order.
var noteWords = [...]string{"window", "cap", "over-cap", "delay"}

// String returns the notes as words, joined by "|"; "" where there are none.
func (n Note) String() string {
	var words []string
	for i, w := range noteWords {
		if n&(1<<i) != 0 {
			words = append(words, w)
		}
	}
	return strings.Join(words, "|")
}

// Result is what became of a step.
type Result uint8

// The results of steps (reference 2.0).
const (
	ResultDone         Result = iota // carried out; a receipt is confirmed
	ResultFailed                     // the verdict, store or park could not be carried out
	ResultStaleReturns               // too late: the delivery ended without a verdict and comes back
	ResultStaleGone                  // too late: the delivery ended without a verdict and does not come back
	ResultTransient                  // every try within the bound failed
	ResultRefused                    // refused for good
	ResultUnknown                    // the receipt says neither
	ResultCut                        // ended by a stop before it was done
)
