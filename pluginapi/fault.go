// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
)

// faultOf returns err as a fault: the one in its chain with what was said around
// it, else one whose code follows from the context's errors. doing names what
// failed.
func faultOf(doing string, err error) *core.Fault {
	if f, ok := errors.AsType[*core.Fault](err); ok && f != nil {
		c := *f
		if c.Code == core.FaultUnspecified {
			c.Code = core.FaultInternal
		}
		if len(c.Diagnostics) == 0 {
			c.Message = err.Error()
		}
		return &c
	}
	f := &core.Fault{Code: core.FaultInternal, Message: fmt.Sprintf("%s: %v", doing, err)}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.Code, f.Transient = core.FaultTimeout, true
	case errors.Is(err, context.Canceled):
		f.Code, f.Transient = core.FaultCanceled, true
	}
	return f
}

// The most text of a fault that the host is sent. What an author puts into an
// error may be a whole message; it must neither fill the host's log nor make a
// frame too large to be sent.
const (
	maxFaultText   = 4 << 10
	maxDiagnostics = 64
	maxReportPlace = 1 << 10 // of a Report's Position
)

// brief returns f with its texts cut to what is sent, f itself where they fit.
func brief(f *core.Fault) *core.Fault {
	if f == nil || fits(f) {
		return f
	}
	c := *f
	c.Message = cut(c.Message, maxFaultText)
	c.Diagnostics = nil
	for _, d := range f.Diagnostics[:min(len(f.Diagnostics), maxDiagnostics)] {
		c.Diagnostics = append(c.Diagnostics, core.Diagnostic{
			Path: cut(d.Path, maxReportPlace), Message: cut(d.Message, maxReportPlace), Fix: cut(d.Fix, maxReportPlace),
		})
	}
	return &c
}

// fits reports whether nothing of f has to be cut.
func fits(f *core.Fault) bool {
	if len(f.Message) > maxFaultText || len(f.Diagnostics) > maxDiagnostics {
		return false
	}
	for i := range f.Diagnostics {
		d := &f.Diagnostics[i]
		if max(len(d.Path), len(d.Message), len(d.Fix)) > maxReportPlace {
			return false
		}
	}
	return true
}

// cut shortens a text to most bytes, at the start of a character.
func cut(s string, most int) string {
	const mark = "..."
	if len(s) <= most {
		return s
	}
	end := most - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// newFault returns a fault with one line of text.
func newFault(code core.FaultCode, format string, args ...any) *core.Fault {
	return &core.Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// misuse is the fault of a host that calls out of order; missing says what has
// to come before.
func misuse(call, missing string) *core.Fault {
	return newFault(core.FaultConflict, "%s is out of order: %s", call, missing)
}

// breach is the fault of a transport that breaks the contract at a field.
func breach(where, path, what, fix string) *core.Fault {
	return &core.Fault{
		Code:        core.FaultInternal,
		Message:     where + " breaks the transport contract",
		Diagnostics: []core.Diagnostic{{Path: path, Message: what, Fix: fix}},
	}
}

// contain calls author code and turns its panic into a fault, so that one
// broken transport call ends what it belongs to and not the process.
func contain(log *slog.Logger, doing string, call func()) (fault *core.Fault) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("transport panicked", "in", doing, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			fault = newFault(core.FaultInternal, "%s panicked: %v; the plugin's log has the stack", doing, v)
		}
	}()
	call()
	return nil
}
