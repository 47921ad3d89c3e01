// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"fmt"

	"github.com/longshore-go/longshore/core"
)

// refusal is the fault of a message that cannot be printed, ever.
func refusal(code core.FaultCode, format string, args ...any) *core.Fault {
	return &core.Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// nextStageGone is the fault of an endpoint whose output nobody reads any more.
func nextStageGone() *core.Fault {
	return &core.Fault{
		Code:    core.FaultClosed,
		Message: "write standard output: the next stage has closed its end",
		Diagnostics: []core.Diagnostic{{
			Fix: "keep the program that reads this output running until the input has ended",
		}},
	}
}

// outputFails is the fault of an endpoint whose output takes nothing.
func outputFails(err error) *core.Fault {
	return &core.Fault{
		Code:        core.FaultUnavailable,
		Message:     err.Error(),
		Diagnostics: []core.Diagnostic{{Fix: "make the output writable and start again"}},
	}
}

// closedFault is the fault of a call after Close.
func closedFault(doing string) *core.Fault {
	return &core.Fault{Code: core.FaultClosed, Message: doing + ": the endpoint is closed"}
}
