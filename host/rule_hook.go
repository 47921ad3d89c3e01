// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
)

// Result is what became of a delivery.
type Result uint8

// The results.
const (
	ResultAcked        = Result(settlement.ResultAcked)        // done
	ResultRetried      = Result(settlement.ResultRetried)      // requeued, or a copy has left
	ResultDropped      = Result(settlement.ResultDropped)      // gone for good, and no dead letter
	ResultDeadLettered = Result(settlement.ResultDeadLettered) // a dead letter
	ResultParked       = Result(settlement.ResultParked)       // kept by the journal, it could not be published
	ResultReleased     = Result(settlement.ResultReleased)     // left to the source
	ResultStale        = Result(settlement.ResultStale)        // the source had it back before its outcome arrived
)

// resultWords are the texts of the results.
var resultWords = [...]string{
	ResultAcked: "acked", ResultRetried: "retried", ResultDropped: "dropped", ResultDeadLettered: "dead-lettered",
	ResultParked: "parked", ResultReleased: "released", ResultStale: "stale",
}

// String returns the result as a word.
func (r Result) String() string {
	if int(r) < len(resultWords) {
		return resultWords[r]
	}
	return "unknown"
}

// Settled is a delivery whose settlement is over: its outcome was carried out, or
// what stands in its place was done.
type Settled struct {
	Endpoint     string
	Subscription string
	Message      core.Message  // a copy of its own, as it was received
	Attempt      uint64        // 1 = the first, 0 = unknown
	Outcome      core.Outcome  // what the handler said, and how it came about
	Err          error         // the cause; nil = none
	Result       Result        // what became of it
	Took         time.Duration // from its arrival at the host to the end of its settlement
}

// Failure is a message that was given up.
type Failure struct {
	Settled
	DeadLetter core.Destination // where it went; zero = it is no dead letter
	Lost       bool             // nobody has it any more, against its policy; an error was logged
}

// AfterSettle calls f after each settlement of the subscription's deliveries,
// whether or not its source took it; not for those that were left unsettled
// ([Leave], [FailFast], what a stop cuts off before it was handled). It runs on
// one goroutine of the subscription's, one call after the other, in the order in
// which settlements end. While 1024 calls wait the subscription begins nothing
// more. A stop waits for them as long as its drain limit allows, and ends ctx
// then. A panic in f, or runtime.Goexit, is logged and ends that call alone.
// Each message is copied for f.
func AfterSettle(f func(ctx context.Context, s Settled)) Rule {
	return Rule{"AfterSettle", caller(), func(s *ruleSet) *complaint {
		s.afterSettle = f
		if f == nil {
			return &complaint{"has no function", "give one, or leave the rule out"}
		}
		return nil
	}}
}

// OnFinalFailure calls f once for each message that is given up: it became a dead
// letter, was dropped or rejected, was refused for its attempts without another
// run, or is lost. When and where it runs is as [AfterSettle] says, which comes
// first where both are given.
func OnFinalFailure(f func(ctx context.Context, x Failure)) Rule {
	return Rule{"OnFinalFailure", caller(), func(s *ruleSet) *complaint {
		s.finalFailure = f
		if f == nil {
			return &complaint{"has no function", "give one, or leave the rule out"}
		}
		return nil
	}}
}
