// SPDX-License-Identifier: Apache-2.0

// Package fault makes the faults that every transport has.
package fault

import (
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
