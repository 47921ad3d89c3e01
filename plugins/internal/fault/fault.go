// SPDX-License-Identifier: Apache-2.0

// Package fault makes the faults that every transport has.
package fault

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/longshore-go/longshore/core"
)

// Refusal is the fault of a message that is refused for good: trying again cannot
// help.
func Refusal(code core.FaultCode, format string, args ...any) *core.Fault {
	return &core.Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Passing is the fault of what cannot be done now, and may be later. fix says what
// helps.
func Passing(code core.FaultCode, fix, format string, args ...any) *core.Fault {
	f := Refusal(code, format, args...)
	f.Transient, f.Diagnostics = true, []core.Diagnostic{{Fix: fix}}
	return f
}

// Closed is the fault of a call after Close.
func Closed(doing string) *core.Fault {
	return &core.Fault{Code: core.FaultClosed, Message: doing + ": the endpoint is closed"}
}

// Of says what failed before an error. A fault keeps its class and its advice.
func Of(doing string, err error) *core.Fault {
	if f, ok := errors.AsType[*core.Fault](err); ok {
		c := *f
		c.Message = doing + ": " + f.Message
		return &c
	}
	f := &core.Fault{Code: core.FaultUnavailable, Message: doing + ": " + err.Error()}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.Code = core.FaultTimeout
	case errors.Is(err, context.Canceled):
		f.Code = core.FaultCanceled
	}
	return f
}

// maxName is how many bytes of a name a text holds.
const maxName = 80

// PublishTo is what a fault of a publish begins with, before a colon. The host
// leaves it out where its own text has named the destination.
func PublishTo(name string) string {
	if len(name) > maxName {
		name = name[:maxName] + "..."
	}
	return "publish to " + strconv.Quote(name)
}

// Shown is a foreign name for people: as it is, or quoted where it is long or holds
// what cannot be seen.
func Shown(name string) string {
	if len(name) > maxName {
		return strconv.Quote(name[:maxName] + "...")
	}
	if q := strconv.Quote(name); name == "" || q[1:len(q)-1] != name {
		return q
	}
	return name
}
