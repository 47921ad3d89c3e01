// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"slices"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// About is what is known of a subject before the first case: what the plugin
// says of itself and of the subject's subscription and destination.
type About struct {
	Subject    Subject
	Describe   *transportpb.DescribeResponse
	Profiles   []core.Capabilities // as Started says; empty = nothing can be read
	Publishing *core.Publishing    // nil = nothing can be published
	Returns    bool                // what is published is read by the subscription
	Shared     bool                // the cases read and publish to the same names
	Unreadable string              // why nothing can be read
	Unwritable string              // why nothing can be published
}

// Any reports whether a profile is as f asks.
func (a *About) Any(f func(c core.Capabilities) bool) bool {
	return slices.ContainsFunc(a.Profiles, f)
}

// All reports whether there are profiles and each is as f asks.
func (a *About) All(f func(c core.Capabilities) bool) bool {
	return len(a.Profiles) > 0 && !slices.ContainsFunc(a.Profiles, func(c core.Capabilities) bool { return !f(c) })
}

// reads says why nothing can be read, "" where something can.
func (a *About) reads() string {
	if len(a.Profiles) == 0 {
		return "nothing can be read: " + a.Unreadable
	}
	return ""
}

// writes says why nothing can be published, "" where something can.
func (a *About) writes() string {
	if a.Publishing == nil {
		return "nothing can be published: " + a.Unwritable
	}
	return ""
}

// feeds says what the subject lacks to put messages where the subscription reads
// them.
func (a *About) feeds() string {
	if a.Subject.Inject == nil && !a.Returns {
		return "an injector: what is published through the plugin does not return"
	}
	return ""
}

// collects says what the subject lacks to read what is published.
func (a *About) collects() string {
	if a.Subject.Collect == nil && !a.Returns {
		return "a collector: what is published through the plugin does not return"
	}
	return ""
}

// kept reports whether what is published survives the process that published
// it, so that another one can read it.
func (a *About) kept() bool {
	return a.Publishing != nil && (a.Publishing.Retains == core.RetainTransport || a.Subject.Collect != nil)
}

// Conditions of cases; those of Applies come first.

// applies joins conditions: the first reason counts.
func applies(conditions ...func(a *About) string) func(a *About) string {
	return func(a *About) string {
		for _, c := range conditions {
			if why := c(a); why != "" {
				return why
			}
		}
		return ""
	}
}

func reads(a *About) string    { return a.reads() }
func writes(a *About) string   { return a.writes() }
func feeds(a *About) string    { return a.feeds() }
func collects(a *About) string { return a.collects() }

// with applies where a profile is as f asks; what names it.
func with(what string, f func(c core.Capabilities) bool) func(a *About) string {
	return func(a *About) string {
		if !a.Any(f) {
			return "no profile has " + what
		}
		return ""
	}
}

// lacking applies where a profile is not as f asks.
func lacking(what string, f func(c core.Capabilities) bool) func(a *About) string {
	return func(a *About) string {
		if a.All(f) || len(a.Profiles) == 0 {
			return "every profile has " + what
		}
		return ""
	}
}

// Properties of profiles.
func canAck(c core.Capabilities) bool       { return c.Ack != core.AckNone }
func acksSingle(c core.Capabilities) bool   { return c.Ack == core.AckSingle }
func cumulative(c core.Capabilities) bool   { return c.Ack == core.AckCumulative }
func canRequeue(c core.Capabilities) bool   { return c.Requeue != core.RequeueNone }
func canDelay(c core.Capabilities) bool     { return c.Requeue == core.RequeueDelayed }
func rewinds(c core.Capabilities) bool      { return c.Rewinds }
func canReject(c core.Capabilities) bool    { return c.Reject != core.RejectNone }
func canExtend(c core.Capabilities) bool    { return c.Extend }
func counts(c core.Capabilities) bool       { return c.Counts == core.CountNative }
func hasAddress(c core.Capabilities) bool   { return c.Address != "" }
func returnsAtAll(c core.Capabilities) bool { return c.Unsettled != core.UnsettledLost }
func ordered(c core.Capabilities) bool      { return c.Order != core.OrderNone }
func hasHold(c core.Capabilities) bool      { return c.MaxHold > 0 }
