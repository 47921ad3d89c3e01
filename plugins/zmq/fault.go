// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// shown is a foreign name for people.
func shown(name string) string { return fault.Shown(name) }

// fault is the refusal as a fault: what is refused so cannot be done, ever.
func (r *refusal) fault(doing string) *core.Fault {
	return &core.Fault{
		Code: core.FaultInvalid, Message: doing,
		Diagnostics: []core.Diagnostic{{Path: "name", Message: r.message, Fix: r.fix}},
	}
}

// faultOf says what failed before an error.
func faultOf(doing string, err error) *core.Fault { return fault.Of(doing, err) }
