// SPDX-License-Identifier: Apache-2.0

package core

import "time"

// OutcomeKind is what a handler says of a delivery.
type OutcomeKind uint8

// The outcomes. The zero value leaves the delivery unsettled: silence is not a
// verdict.
const (
	OutcomeLeave      OutcomeKind = iota // no outcome: the source's Unsettled decides
	OutcomeAck                           // done
	OutcomeRetry                         // once more, by the policy
	OutcomeRetryAfter                    // once more after Outcome.After, by the policy
	OutcomeDrop                          // refused, never a dead letter
	OutcomeDeadLetter                    // straight to the dead letter
	OutcomeFailFast                      // leave, and stop the service
)

// Cause says how an outcome came about; it decides which line opens the plan.
type Cause uint8

// The causes.
const (
	CauseReturned    Cause = iota // the handler returned it; nothing is logged
	CauseError                    // the handler returned an error (L-ERR)
	CausePanic                    // the handler panicked (L-PAN)
	CauseUndecodable              // the message could not be decoded (L-DEC); the handler did not run
	CauseReplyFailed              // the reply could not be published (L-REPLY)
)

// Outcome is what became of a delivery in its handler.
type Outcome struct {
	Kind  OutcomeKind
	Cause Cause
	After time.Duration // of OutcomeRetryAfter; 0 = at once, without a floor
}

// Attempt counts a message's deliveries.
type Attempt struct {
	Native uint32 // the source's own count, first delivery = 1; 0 = unknown
	Copies uint64 // copies published so far, from the count header
}

// Void says what became of a delivery behind its handler's back.
type Void uint8

// The states of a delivery whose verdict is still owed.
const (
	VoidLive    Void = iota // the source still waits for a verdict
	VoidReturns             // it ended without one and comes back
	VoidGone                // it ended without one and does not come back
)

// VerdictKind is what is sent to the transport about a delivery.
type VerdictKind uint8

// The verdicts.
const (
	VerdictUnspecified VerdictKind = iota
	VerdictAck                     // the source is told that the delivery is done
	VerdictRequeue                 // it comes back, at once or after a delay
	VerdictReject                  // gone for good without being accepted
	VerdictRelease                 // nothing goes to the source, the plugin forgets it, its credit returns
	VerdictExtend                  // its hold is prolonged
)

// Policy is what a registration declares, reduced to what decisions read.
// Naming, backoff and jitter are applied before Decide: a plain retry under a
// Backoff arrives as OutcomeRetryAfter.
type Policy struct {
	MaxAttempts uint32 // deliveries, the first included; 0 = no cap
	DeadLetter  bool   // a dead letter is declared
	RetryTo     bool   // a destination for copies is named (RetryTo or RetryToFunc)
	Backoff     bool   // a Backoff is declared
	Elapsed     bool   // a MaxElapsed is declared: a cap on time, see Case.Spent
}

// Empty reports whether the policy declares nothing that changes a retry.
func (p Policy) Empty() bool { return !p.capped() && !p.DeadLetter && !p.Backoff }

// capped reports whether attempts end at some time, by their number or their
// time, so that something has to travel with the message that says when.
func (p *Policy) capped() bool { return p.MaxAttempts > 0 || p.Elapsed }
