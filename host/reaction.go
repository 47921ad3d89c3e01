// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strconv"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
)

// Reaction says what an error, a panic or an undecodable message counts as, see
// [OnError], [OnPanic] and [OnUndecodable].
type Reaction int64

// The reactions. [AsRetryAfter] makes one more.
const (
	FailFast     Reaction = -1 - iota // leave the delivery unsettled and stop the service
	AsAck                             // done: the message is skipped
	AsRetry                           // once more, by the policy
	AsDrop                            // refused, never a dead letter
	AsDeadLetter                      // straight to the dead letter
	NeverRetry                        // no further attempt: as at the cap, a dead letter where one is declared, else rejected
)

// reactionNames are the names of the constants, in their order.
var reactionNames = [...]string{"FailFast", "AsAck", "AsRetry", "AsDrop", "AsDeadLetter", "NeverRetry"}

// String returns the reaction as it is written in Go.
func (r Reaction) String() string {
	switch i := int64(-1 - r); {
	case r >= 0:
		return "AsRetryAfter(" + time.Duration(r).String() + ")"
	case i < int64(len(reactionNames)):
		return reactionNames[i]
	}
	return "Reaction(" + strconv.FormatInt(int64(r), 10) + ")"
}

// AsRetryAfter is the reaction that handles the delivery once more after d, by
// the policy. A negative d is at once.
func AsRetryAfter(d time.Duration) Reaction { return Reaction(max(d, 0)) }

// outcome returns the outcome that r stands for, with its cause.
func (r Reaction) outcome(cause core.Cause) core.Outcome {
	o := core.Outcome{Cause: cause}
	switch {
	case r >= 0:
		o.Kind, o.After = core.OutcomeRetryAfter, time.Duration(r)
	case r == FailFast:
		o.Kind = core.OutcomeFailFast
	case r == AsAck:
		o.Kind = core.OutcomeAck
	case r == AsRetry, r == NeverRetry:
		o.Kind = core.OutcomeRetry
	case r == AsDrop:
		o.Kind = core.OutcomeDrop
	case r == AsDeadLetter:
		o.Kind = core.OutcomeDeadLetter
	}
	return o
}

// said is what a failure with the cause err counts as.
func (r Reaction) said(cause core.Cause, err error) settlement.Said {
	return settlement.Said{Outcome: r.outcome(cause), Err: err, Spent: r == NeverRetry}
}

// declared is the reaction as Explain tells it.
func (r Reaction) declared() core.Reaction {
	return core.Reaction{Outcome: r.outcome(core.CauseReturned), Spent: r == NeverRetry}
}

// valid reports whether r is one of the reactions.
func (r Reaction) valid() bool { return r >= NeverRetry }
