// SPDX-License-Identifier: Apache-2.0

package pipe

import "github.com/longshore-go/longshore/core"

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
