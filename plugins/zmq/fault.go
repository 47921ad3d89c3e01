// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"context"
	"errors"
	"strconv"

	"github.com/longshore-go/longshore/core"
)

// maxShown is how much of a foreign name a text shows.
const maxShown = 80

// shown is a foreign name for people: as it is, or quoted where it is long or
// holds what cannot be seen.
func shown(name string) string {
	if len(name) > maxShown {
		return strconv.Quote(name[:maxShown] + "...")
	}
	if q := strconv.Quote(name); name == "" || q[1:len(q)-1] != name {
		return q
	}
	return name
}

// fault is the refusal as a fault: what is refused so cannot be done, ever.
func (r *refusal) fault(doing string) *core.Fault {
	return &core.Fault{
		Code: core.FaultInvalid, Message: doing,
		Diagnostics: []core.Diagnostic{{Path: "name", Message: r.message, Fix: r.fix}},
	}
}

// faultOf says what failed before an error. A fault keeps its class and its
// advice.
func faultOf(doing string, err error) *core.Fault {
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
