// SPDX-License-Identifier: Apache-2.0

package core

import "fmt"

// A CapabilityError says that a set of capabilities contradicts itself.
type CapabilityError struct {
	Field  string // the field that is wrong, as in Capabilities
	Reason string // what it contradicts
	Fix    string // what to do
}

// Error names the field, the contradiction and the fix.
func (e *CapabilityError) Error() string {
	return fmt.Sprintf("check capabilities: %s: %s; %s", e.Field, e.Reason, e.Fix)
}

// Valid returns a *CapabilityError for the first contradiction in the set, or
// nil. A set from a plugin that is newer than the host may hold modes that the
// host does not know; they are contradictions too.
func (c Capabilities) Valid() error {
	for _, check := range []func() *CapabilityError{c.known, c.limits, c.withoutAcks, c.cumulative} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// known checks that every mode is one of this version's.
func (c Capabilities) known() *CapabilityError {
	for _, m := range []struct {
		field string
		value fmt.Stringer
		ok    bool
	}{
		{"Ack", c.Ack, c.Ack <= AckCumulative},
		{"Requeue", c.Requeue, c.Requeue <= RequeueDelayed},
		{"Reject", c.Reject, c.Reject <= RejectDeadLetters},
		{"Counts", c.Counts, c.Counts <= CountNative},
		{"Unsettled", c.Unsettled, c.Unsettled <= UnsettledOnTimeout},
		{"Order", c.Order, c.Order <= OrderTotal},
	} {
		if !m.ok {
			return &CapabilityError{m.field, fmt.Sprintf("%s is not known here", m.value), "use a mode of this version, or a newer host"}
		}
	}
	return nil
}

// limits checks the durations and what needs them.
func (c Capabilities) limits() *CapabilityError {
	switch {
	case c.MaxDelay < 0:
		return &CapabilityError{"MaxDelay", "it is negative", "use 0 for no limit"}
	case c.MaxHold < 0:
		return &CapabilityError{"MaxHold", "it is negative", "use 0 for no limit"}
	case c.Recounts && c.Counts == CountNone:
		return &CapabilityError{"Recounts", "Counts is none", "set it only where the source counts"}
	case c.Rewinds && c.Requeue == RequeueNone:
		return &CapabilityError{"Rewinds", "Requeue is none", "set it only where deliveries can be handed back"}
	case c.Rewinds && c.Order == OrderNone:
		return &CapabilityError{"Rewinds", "Order is none", "set it only where deliveries come in order"}
	case c.MaxDelay > 0 && c.Requeue != RequeueDelayed:
		return &CapabilityError{"MaxDelay", "Requeue is " + c.Requeue.String(), "set it only with Requeue delayed"}
	}
	return nil
}

// withoutAcks checks a source that takes no verdict.
func (c Capabilities) withoutAcks() *CapabilityError {
	if c.Ack == AckNone {
		const why = "nothing can be acked"
		switch {
		case c.Requeue != RequeueNone:
			return &CapabilityError{"Requeue", why, "set it to none"}
		case c.Reject != RejectNone:
			return &CapabilityError{"Reject", why, "set it to none"}
		case c.Counts != CountNone:
			return &CapabilityError{"Counts", why + ", so nothing is delivered again", "set it to none"}
		case c.Extend:
			return &CapabilityError{"Extend", why + ", so nothing is held", "leave it off"}
		case c.MaxHold != 0:
			return &CapabilityError{"MaxHold", why + ", so nothing is held", "leave it 0"}
		case c.Unsettled != UnsettledLost:
			return &CapabilityError{"Unsettled", why + ", so nothing is delivered again", "set it to lost"}
		}
	}
	switch {
	case c.Unsettled == UnsettledOnTimeout && c.MaxHold == 0:
		return &CapabilityError{"MaxHold", "Unsettled is on-timeout", "set it to that timeout"}
	case c.Extend && c.MaxHold == 0:
		return &CapabilityError{"Extend", "there is no MaxHold to prolong", "set MaxHold, or leave it off"}
	}
	return nil
}

// cumulative checks a source whose acks cover what is before them.
func (c Capabilities) cumulative() *CapabilityError {
	if c.Ack != AckCumulative {
		return nil
	}
	const why = "acks are cumulative, so no single delivery can be handed back"
	switch {
	case c.Requeue != RequeueNone:
		return &CapabilityError{"Requeue", why, "set it to none"}
	case c.Reject != RejectNone:
		return &CapabilityError{"Reject", why, "set it to none"}
	}
	return nil
}
