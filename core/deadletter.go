// SPDX-License-Identifier: Apache-2.0

package core

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The headers that a dead letter carries beside the count, one line of
// printable text each.
const (
	EndpointHeader     = "x-longshore-endpoint"      // where the delivery was read
	SubscriptionHeader = "x-longshore-subscription"  // where the delivery was read
	AttemptsHeader     = "x-longshore-attempts"      // attempts made, decimal
	TimeHeader         = "x-longshore-time"          // when it was dead-lettered, RFC 3339 in UTC
	ErrorHeader        = "x-longshore-error"         // the type of the cause
	ReasonHeader       = "x-longshore-reason"        // the text of the cause
	StackHeader        = "x-longshore-stack"         // the stack of a panic
	FirstFailureHeader = "x-longshore-first-failure" // RFC 3339 in UTC, where it is known: with MaxElapsed, then on copies as well
	EncodedHeader      = "x-longshore-headers"       // the headers that the destination cannot carry
)

// Where texts of a cause are cut, in bytes. A cut text ends with an ellipsis.
const (
	MaxNameBytes   = 256  // endpoint, subscription, type of the error
	MaxReasonBytes = 1024 // text of the error
	MaxStackBytes  = 4096 // stack of a panic
)

// causeNames are the headers that a dead letter replaces, whether or not it has
// something to put there.
var causeNames = [...]string{
	EndpointHeader, SubscriptionHeader, AttemptsHeader, TimeHeader,
	ErrorHeader, ReasonHeader, StackHeader, FirstFailureHeader,
}

// DeadLetter is what is said of a delivery that becomes a dead letter. Zero
// fields are left out.
type DeadLetter struct {
	Endpoint     string
	Subscription string
	Attempts     uint64
	Time         time.Time
	Error        string // type of the cause
	Reason       string // text of the cause
	Stack        string // of a panic
	FirstFailure time.Time
}

// headers appends the headers of d to into.
func (d *DeadLetter) headers(into Headers) Headers {
	text := func(name, value string, limit int) {
		if value = oneLine(value, limit); value != "" {
			into = append(into, Header{Name: name, Value: []byte(value)})
		}
	}
	stamp := func(name string, at time.Time) {
		if !at.IsZero() {
			text(name, at.UTC().Format(time.RFC3339), MaxNameBytes)
		}
	}
	text(EndpointHeader, d.Endpoint, MaxNameBytes)
	text(SubscriptionHeader, d.Subscription, MaxNameBytes)
	if d.Attempts > 0 {
		text(AttemptsHeader, strconv.FormatUint(d.Attempts, 10), MaxNameBytes)
	}
	stamp(TimeHeader, d.Time)
	text(ErrorHeader, d.Error, MaxNameBytes)
	text(ReasonHeader, d.Reason, MaxReasonBytes)
	text(StackHeader, d.Stack, MaxStackBytes)
	stamp(FirstFailureHeader, d.FirstFailure)
	return into
}

// maxMessage is the most payload and headers that travel at all: the limit of a
// destination that names none.
const maxMessage = 64 << 20

// ForDeadLetter returns the headers of the dead letter of a message with the
// headers h and payload bytes of payload: those of a copy, then what cause says
// (nil: nothing), which replaces what the message had under these names. What
// the destination to cannot carry travels in one header together, so that a
// dead letter is never refused for a header; a destination without headers gets
// none. Where the whole is too large for to, the stack goes, then the reason,
// then the rest of the cause.
func (h Headers) ForDeadLetter(count uint64, cause *DeadLetter, to Publishing, payload int) Headers {
	list := h.ForCopy(make(Headers, 0, len(h)+2+len(causeNames)), count)
	if cause != nil {
		list = cause.headers(list.Without(causeNames[:]...))
	}
	out := list.fit(to)
	limit := int64(maxMessage)
	if to.MaxBytes > 0 {
		limit = min(limit, to.MaxBytes)
	}
	for _, names := range [...][]string{{StackHeader}, {ReasonHeader}, causeNames[:]} {
		if cause == nil || int64(payload)+int64(out.Size()) <= limit {
			break
		}
		list = list.Without(names...)
		out = list.fit(to)
	}
	return out
}

// oneLine returns s as one line of printable text of at most limit bytes: runs
// of blanks, line breaks and control characters become one blank.
func oneLine(s string, limit int) string {
	var b strings.Builder
	blank := false
	for _, r := range s {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) && r != utf8.RuneError {
			blank = b.Len() > 0
			continue
		}
		if blank {
			b.WriteByte(' ')
			blank = false
		}
		b.WriteRune(r)
		if b.Len() > limit {
			break
		}
	}
	return cut(b.String(), limit)
}

// cut returns s, or its beginning and an ellipsis where it is longer than limit
// bytes.
func cut(s string, limit int) string {
	const ellipsis = "..."
	if len(s) <= limit {
		return s
	}
	n := limit - len(ellipsis)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.TrimRight(s[:n], " ") + ellipsis
}
