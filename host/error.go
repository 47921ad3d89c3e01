// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"strings"
)

// StartError says why a host did not start. Nothing is left running then, and
// nothing was delivered.
type StartError struct {
	Findings []Finding // refusals only
	Err      error     // a start that was cut short: the context's error; nil otherwise
}

// Error lists all findings, one a line.
func (e *StartError) Error() string {
	var b strings.Builder
	b.WriteString("start host: ")
	switch {
	case len(e.Findings) == 0 && e.Err != nil:
		b.WriteString(e.Err.Error())
	case len(e.Findings) == 1:
		b.WriteString(e.Findings[0].String())
	default:
		fmt.Fprintf(&b, "%d findings", len(e.Findings))
		for _, f := range e.Findings {
			b.WriteString("\n  - " + f.String())
		}
	}
	return b.String()
}

// Unwrap returns the errors behind the findings.
func (e *StartError) Unwrap() []error {
	var errs []error
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	for _, f := range e.Findings {
		if f.Err != nil {
			errs = append(errs, f.Err)
		}
	}
	return errs
}

// EndpointError says that an endpoint is lost for good and that the host
// stopped for it: its plugin crashed too often, may not be started again, or one
// of its subscriptions ended with an error.
type EndpointError struct {
	Endpoint     string
	Subscription string // the one that ended; "" = the endpoint as a whole
	Received     uint64 // deliveries received so far
	Unsettled    uint64 // those of them without a verdict
	Position     string // of the last one received, for people; "" = unknown
	Err          error
}

// Error names the endpoint, the reason and what is unsettled.
func (e *EndpointError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "endpoint %s", e.Endpoint)
	if e.Subscription != "" {
		fmt.Fprintf(&b, ": subscription %s ended", e.Subscription)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	fmt.Fprintf(&b, " (%d deliveries received, %d unsettled", e.Received, e.Unsettled)
	if e.Position != "" {
		fmt.Fprintf(&b, ", the last one at %s", e.Position)
	}
	b.WriteString(")")
	return b.String()
}

// Unwrap returns the reason.
func (e *EndpointError) Unwrap() error { return e.Err }

// HandlerError says that a handler's failure stopped the host, because
// [FailFast] was declared for it. If several failed the first is returned.
type HandlerError struct {
	Endpoint     string
	Subscription string
	Err          error // a *PanicError, or why the message could not be decoded
}

// Error names the subscription and the failure.
func (e *HandlerError) Error() string {
	return fmt.Sprintf("subscription %s of endpoint %s: %v; the delivery was left unsettled", e.Subscription, e.Endpoint, e.Err)
}

// Unwrap returns the failure.
func (e *HandlerError) Unwrap() error { return e.Err }

// AbandonedError lists what a stop cut off at its limit, by subscription.
type AbandonedError struct {
	Subscriptions []Abandoned
}

// Abandoned is what a stop cut off on one subscription.
type Abandoned struct {
	Endpoint     string
	Subscription string   // "" = what the endpoint's publishers left
	Handlers     int      // handlers that did not return; their deliveries are unsettled
	Cancelled    int      // handlers that the stop cancelled and that returned an error; likewise
	Unhandled    int      // deliveries that no handler has begun and that do not come back
	Messages     []string // names and positions of some of those deliveries, at most 16
	Settlements  int      // outcomes that were not carried out to their end
	Lost         int      // of Settlements, messages that do not come back
	Copies       int      // copies that waited for their time; they are lost
	Publishes    int      // of the endpoint as a whole: messages of publishers that await their receipt
	Hooks        int      // calls of AfterSettle or OnFinalFailure that were not made or did not return
}

// counts lists what is not zero.
func (a *Abandoned) counts() string {
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{
		{a.Handlers, "handlers did not return"}, {a.Cancelled, "handlers were cancelled"},
		{a.Unhandled, "deliveries were not handled and are lost"},
		{a.Settlements, "settlements were cut off"}, {a.Lost, "of them lost a message"},
		{a.Copies, "waiting copies are lost"}, {a.Publishes, "publishes have no receipt"}, {a.Hooks, "hooks were not called or did not return"},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return strings.Join(parts, ", ")
}

// Error lists the subscriptions.
func (e *AbandonedError) Error() string {
	var b strings.Builder
	b.WriteString("stop cut work off")
	for i, s := range e.Subscriptions {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep)
		if s.Subscription != "" {
			fmt.Fprintf(&b, "subscription %s of ", s.Subscription)
		}
		fmt.Fprintf(&b, "endpoint %s: %s", s.Endpoint, s.counts())
		if len(s.Messages) > 0 {
			b.WriteString(" (" + strings.Join(s.Messages, ", ") + ")")
		}
	}
	b.WriteString("; " + e.fix())
	return b.String()
}

// fix says what to do about what was cut off.
func (e *AbandonedError) fix() string {
	var all Abandoned
	for _, s := range e.Subscriptions {
		all.Handlers += s.Handlers
		all.Copies += s.Copies
		all.Cancelled += s.Cancelled + s.Unhandled + s.Settlements + s.Publishes + s.Hooks
	}
	var fixes []string
	if all.Handlers > 0 {
		fixes = append(fixes, "let handlers return when their context ends")
	}
	switch {
	case all.Copies > 0:
		fixes = append(fixes, "raise the drain limit above the longest delay of copies that others read, or keep copies in a journal")
	case all.Handlers == 0 || all.Cancelled > 0:
		fixes = append(fixes, "raise the drain limit")
	}
	return strings.Join(fixes, "; ")
}
