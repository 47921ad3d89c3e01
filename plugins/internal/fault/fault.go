// SPDX-License-Identifier: Apache-2.0

// Package fault makes the faults that every transport has.
package fault

import (
	"fmt"

	"github.com/longshore-go/longshore/core"
)

// Refusal is the fault of a message that is refused for good: trying again cannot
// help.
func Refusal(code core.FaultCode, format string, args ...any) *core.Fault {
	return &core.Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Closed is the fault of a call after Close.
func Closed(doing string) *core.Fault {
	return &core.Fault{Code: core.FaultClosed, Message: doing + ": the endpoint is closed"}
}
