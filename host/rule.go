// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/longshore-go/longshore/core"
)

// Rule declares how a subscription's deliveries are treated, see [Handle]. Each
// rule but [OnError] may be given once; one given twice, or two that contradict
// each other, are refused at start with both places. Rules for all subscriptions
// of a host or an endpoint are given by [WithDefaults] and [Endpoint.Defaults].
type Rule struct {
	name  string
	place place
	set   func(*ruleSet) *complaint
}

// complaint is what is wrong with a rule by itself.
type complaint struct{ message, fix string }

// ruleSet is the rules of one subscription, resolved.
type ruleSet struct {
	maxAttempts uint32
	deadLetter  core.Destination
	causes      bool
	retryTo     core.Destination
	retryFunc   func(core.Message, uint64) (core.Destination, error)
	backoff     Schedule
	maxElapsed  time.Duration
	snoozes     int // how often Snooze may put a delivery off
	snoozedIn   time.Duration
	errors      []errorClass // in the order they are asked
	floor       time.Duration
	noFloor     bool
	timeout     time.Duration
	panics      Reaction
	undecodable Reaction
	forward     core.Destination
	replyTo     core.Destination
	replyOn     *Endpoint // nil = the subscription's own
	publishes   []core.Destination
	dispatch
	afterSettle  func(context.Context, Settled)
	finalFailure func(context.Context, Failure)
	contentType  string // assumed of messages that name none
	middleware   []wrapper

	given     map[string]place // the rules that were given, by name
	defaulted map[string]bool  // those of them that are defaults
}

// MaxAttempts caps the deliveries of one message at n, the first included.
// After the n-th failed one it becomes a dead letter where one is declared and
// is rejected otherwise. The default is no cap.
func MaxAttempts(n int) Rule {
	return Rule{"MaxAttempts", caller(), func(s *ruleSet) *complaint {
		if n < 1 || n > math.MaxInt32 {
			return &complaint{
				fmt.Sprintf("%d is no number of attempts", n),
				fmt.Sprintf("use 1 to %d, or leave the rule out for no cap", math.MaxInt32),
			}
		}
		s.maxAttempts = uint32(n)
		return nil
	}}
}

// DeadLetterOption tunes [DeadLetterTo].
type DeadLetterOption func(*ruleSet)

// WithCauses puts the headers that tell where a dead letter comes from and why
// (x-longshore-*) onto dead letters whose destination carries headers inside
// the payload. Where headers travel beside the payload they are always there.
func WithCauses() DeadLetterOption { return func(s *ruleSet) { s.causes = true } }

// DeadLetterTo sends messages whose attempts are used up, or of which the
// handler says [DeadLetter], to d. Without [MaxAttempts] and [MaxElapsed] every
// retry goes there.
// A d without an endpoint is on the subscription's own.
func DeadLetterTo(d core.Destination, opts ...DeadLetterOption) Rule {
	return Rule{"DeadLetterTo", caller(), func(s *ruleSet) *complaint {
		s.deadLetter = d
		for _, o := range opts {
			if o != nil {
				o(s)
			}
		}
		return nameless(d)
	}}
}

// RetryTo sends copies below the cap to d, which must lead back to this
// subscription or to one that handles them alike. The default is the
// subscription's own address, where it has one. A d without an endpoint is on
// the subscription's own.
func RetryTo(d core.Destination) Rule {
	return Rule{"RetryTo", caller(), func(s *ruleSet) *complaint {
		s.retryTo = d
		return nameless(d)
	}}
}

// RetryToFunc is [RetryTo] for a destination that depends on the message. f gets
// the message and its attempt (0 = unknown), which are valid until it returns;
// it runs on the subscription's worker. An error, or a destination that nothing
// can carry, drops the message with a warning. Dead letters do not ask f.
func RetryToFunc(f func(m core.Message, attempt uint64) (core.Destination, error)) Rule {
	return Rule{"RetryToFunc", caller(), func(s *ruleSet) *complaint {
		s.retryFunc = f
		if f == nil {
			return &complaint{"has no function", "give one, or leave the rule out"}
		}
		return nil
	}}
}

// Floor is what the least wait before a plain native requeue grows to, from
// 50 ms for the second return of a message on. It applies only where nothing else
// keeps its attempts apart or ends them: without [MaxAttempts], without [Backoff]
// and without a dead letter that takes every retry. The default is 1 s; 0 turns it
// off, and a message that always fails then comes back as fast as its transport
// can bring it.
func Floor(longest time.Duration) Rule {
	return Rule{"Floor", caller(), func(s *ruleSet) *complaint {
		if longest < 0 {
			return &complaint{fmt.Sprintf("%v is no wait", longest), "use 0 to turn the floor off, or a wait above it"}
		}
		s.floor, s.noFloor = longest, longest == 0
		return nil
	}}
}

// Timeout ends the context of the handler and its middleware d after the delivery,
// or the batch, was handed to it. What the handler then returns still decides. The
// default is no limit.
func Timeout(d time.Duration) Rule {
	return Rule{"Timeout", caller(), func(s *ruleSet) *complaint {
		if d <= 0 {
			return &complaint{fmt.Sprintf("%v is no limit", d), "use a time above 0, or leave the rule out for no limit"}
		}
		s.timeout = d
		return nil
	}}
}

// OnPanic says what a panic of the handler counts as; errors that it returns have
// [OnError]. The default is [AsRetry].
// The panic is logged with its stack in any case.
func OnPanic(r Reaction) Rule {
	return Rule{"OnPanic", caller(), func(s *ruleSet) *complaint {
		s.panics = r
		return unknownReaction(r)
	}}
}

// OnUndecodable says what a message that cannot be decoded counts as. The
// default is [AsDrop]. It is logged in any case, and the handler does not run.
func OnUndecodable(r Reaction) Rule {
	return Rule{"OnUndecodable", caller(), func(s *ruleSet) *complaint {
		s.undecodable = r
		return unknownReaction(r)
	}}
}

// Forward publishes each message that the handler acked to d, and acks it once
// that is confirmed; a publish that fails is a retry. The message leaves as it
// was received, or with the payload given to [Message.Replace], without
// x-ruststream-retry-count and x-longshore-* headers. With Forward the handler
// may be nil.
func Forward(d core.Destination) Rule {
	return Rule{"Forward", caller(), func(s *ruleSet) *complaint {
		s.forward = d
		return nameless(d)
	}}
}

// nameless complains of a destination without a name.
func nameless(d core.Destination) *complaint {
	if d.Name == "" {
		return &complaint{"names no destination", "give the name to publish to, as in endpoint.To(\"name\")"}
	}
	return nil
}

// unknownReaction complains of a number that is no reaction.
func unknownReaction(r Reaction) *complaint {
	if !r.valid() {
		return &complaint{fmt.Sprintf("%d is no reaction", int64(r)), "use FailFast, AsAck, AsRetry, AsRetryAfter, AsDrop, AsDeadLetter or NeverRetry"}
	}
	return nil
}
