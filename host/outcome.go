// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"time"

	"github.com/longshore-go/longshore/core"
)

// outcomeError is an error that says an outcome. Its text is its cause's.
type outcomeError struct {
	kind   core.OutcomeKind
	after  time.Duration
	snooze bool // a retry later that is not counted
	cause  error
}

// Retry says that the delivery is handled once more, by the policy: as a plain
// error does. cause may be nil; with one it is logged and goes onto the dead
// letter.
func Retry(cause error) error {
	return &outcomeError{kind: core.OutcomeRetry, cause: cause}
}

// RetryAfter says that the delivery is handled once more after d, by the
// policy. A d of 0 or less is at once, without the floor and the backoff of a
// plain retry.
func RetryAfter(d time.Duration, cause error) error {
	return &outcomeError{kind: core.OutcomeRetryAfter, after: max(d, 0), cause: cause}
}

// Snooze says that it is too early: the delivery is handled again after d and is
// not counted, so that it never comes to its cap. It stays unsettled meanwhile
// and keeps its place in the subscription's window; when the host ends, its source
// decides whether it comes back. [Message.Attempt] is the same then, and
// [Message.Snoozes] one more. A d below 0 is 0.
//
// The rule [SnoozeLimit] bounds how often and how long. Beyond that, and where the
// source does not let a delivery be held for d, it is a [RetryAfter] with d and
// cause. [Host.Explain] has a row for it.
func Snooze(d time.Duration, cause error) error {
	return &outcomeError{kind: core.OutcomeRetryAfter, after: max(d, 0), snooze: true, cause: cause}
}

// Drop says that the message is refused: it does not come back and does not
// become a dead letter.
func Drop(cause error) error {
	return &outcomeError{kind: core.OutcomeDrop, cause: cause}
}

// DeadLetter says that the message goes straight to the dead letter, whatever
// is left of its attempts. Without a declared dead letter it is dropped with a
// warning, or left to the transport's own dead letter.
func DeadLetter(cause error) error {
	return &outcomeError{kind: core.OutcomeDeadLetter, cause: cause}
}

// Leave says nothing about the delivery: it stays unsettled, and the source
// decides whether it comes back.
func Leave() error {
	return &outcomeError{kind: core.OutcomeLeave}
}

// Error returns the cause's text, or the outcome's name without a cause.
func (e *outcomeError) Error() string {
	if e.cause != nil {
		return e.cause.Error()
	}
	switch e.kind {
	case core.OutcomeRetry:
		return "retry"
	case core.OutcomeRetryAfter:
		if e.snooze {
			return "snooze " + e.after.String()
		}
		return "retry after " + e.after.String()
	case core.OutcomeDrop:
		return "drop"
	case core.OutcomeDeadLetter:
		return "dead letter"
	default:
		return "leave"
	}
}

// Unwrap returns the cause.
func (e *outcomeError) Unwrap() error { return e.cause }

// outcomeIn returns the outcome that an error says, or the panic that it is. Of both
// the outer one counts: an outcome may have a panic for its cause, and one that was
// thrown is a panic.
func outcomeIn(err error) (explicit *outcomeError, panicked *PanicError) {
	says := errors.As(err, &explicit)
	if !errors.As(err, &panicked) || panicked == nil {
		return explicit, nil
	}
	var inner *outcomeError
	if says && (!errors.As(panicked.Unwrap(), &inner) || inner != explicit) {
		return explicit, nil
	}
	return nil, panicked
}

// outcomeOf reads what a handler returned. The error is what is logged and put
// onto a dead letter; nil where the handler gave no cause.
func outcomeOf(err error) (core.Outcome, error) {
	if err == nil {
		return core.Outcome{Kind: core.OutcomeAck}, nil
	}
	var said *outcomeError
	if !errors.As(err, &said) {
		return core.Outcome{Kind: core.OutcomeRetry, Cause: core.CauseError}, err
	}
	o := core.Outcome{Kind: said.kind, After: said.after}
	cause := err
	if direct, ok := err.(*outcomeError); ok { //nolint:errorlint // only the marker itself is taken off, wrapping around it is kept
		cause = direct.cause
	}
	if cause != nil && o.Kind != core.OutcomeLeave {
		o.Cause = core.CauseError
	}
	return o, cause
}
