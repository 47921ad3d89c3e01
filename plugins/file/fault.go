// SPDX-License-Identifier: Apache-2.0

package file

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/reader"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
	"github.com/longshore-go/longshore/plugins/file/internal/writer"
)

// faultOf classifies what went wrong with files. A fault stays as it is.
func faultOf(doing string, err error) *core.Fault {
	if f, ok := errors.AsType[*core.Fault](err); ok {
		return f
	}
	f := &core.Fault{Code: core.FaultUnavailable, Message: doing + ": " + err.Error()}
	if d := classify(f, err); d != (core.Diagnostic{}) {
		f.Message, d.Message = doing, cmp.Or(d.Message, err.Error())
		f.Diagnostics = []core.Diagnostic{d}
	}
	return f
}

// classify sets a fault's class and returns the option concerned and what to do,
// as far as they are known.
func classify(f *core.Fault, err error) core.Diagnostic {
	switch {
	case is[*reader.PositionError](err):
		f.Code = core.FaultInvalid
		return core.Diagnostic{Path: "start", Fix: "start at most one behind the last sequence, or at the end"}
	case is[*reader.Problem](err):
		p, _ := errors.AsType[*reader.Problem](err)
		f.Code = problemCode(p)
	case is[*segment.KindError](err):
		f.Code = core.FaultInvalid
		return core.Diagnostic{Path: "path", Fix: "give the path of a stream file; nothing was written to this one"}
	case is[*segment.LockedError](err):
		f.Code = core.FaultConflict
		return locked(err)
	case is[*writer.LimitError](err):
		f.Code = core.FaultExhausted
		return core.Diagnostic{Path: "max_bytes", Fix: "raise it, set rotate, or go on in another file"}
	case is[*writer.ExhaustedError](err):
		f.Code = core.FaultExhausted
		return core.Diagnostic{Path: "path", Fix: "go on in another file"}
	case is[*writer.ForeignError](err):
		f.Code = core.FaultConflict
		return core.Diagnostic{Path: "path", Fix: "stop what else writes the file, and start again"}
	case is[*writer.InTheWayError](err):
		f.Code = core.FaultConflict
		return core.Diagnostic{Path: "path", Fix: "move that file away"}
	case is[*writer.TornError](err):
		f.Code = core.FaultInvalid
		return core.Diagnostic{Path: "torn_tail", Fix: "set it to cut, or repair the file"}
	case is[*writer.DamagedError](err):
		f.Code = core.FaultInvalid
		return core.Diagnostic{Path: "path", Fix: "repair the file or go on in another one; nothing was written to this one"}
	case errors.Is(err, unix.EISDIR):
		f.Code = core.FaultInvalid
		return core.Diagnostic{Path: "path", Fix: "add the name of the file, as in orders.ss"}
	case errors.Is(err, fs.ErrNotExist):
		f.Code = core.FaultNotFound
		return core.Diagnostic{Path: "path", Fix: "create what is missing"}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		f.Code = core.FaultDenied
		return core.Diagnostic{Path: "path", Fix: "let this user read and write the file and its folder"}
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EFBIG):
		f.Code = core.FaultExhausted
		if is[*writer.WriteError](err) {
			return core.Diagnostic{Fix: "make room on the disk; publishing goes on by itself then"}
		}
		return core.Diagnostic{Fix: "make room on the disk"}
	case errors.Is(err, context.DeadlineExceeded):
		f.Code = core.FaultTimeout
	case errors.Is(err, context.Canceled):
		f.Code = core.FaultCanceled
	case errors.Is(err, reader.ErrClosed), errors.Is(err, writer.ErrClosed):
		f.Code = core.FaultClosed
	}
	return core.Diagnostic{}
}

// locked says who has the path.
func locked(err error) core.Diagnostic {
	e, _ := errors.AsType[*segment.LockedError](err)
	holder := cmp.Or(e.Owner, "somebody else")
	if e.PID != 0 {
		holder += " in process " + strconv.Itoa(e.PID)
	}
	return core.Diagnostic{
		Path:    "path",
		Message: holder + " has the lock of " + e.Path + ", and one at a time has it",
		Fix:     "let one endpoint write the path, or give each its own",
	}
}

// is reports whether err is or wraps a T.
func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// reportOf tells of something that was found in a file and passed.
func reportOf(p *reader.Problem) pluginapi.Report {
	return pluginapi.Report{
		Fault:    &core.Fault{Code: problemCode(p), Message: p.Error()},
		Position: p.Path + " at offset " + strconv.FormatInt(p.Offset, 10),
	}
}

// problemCode is the class of something found in a file.
func problemCode(p *reader.Problem) core.FaultCode {
	if p.Kind == reader.Gone {
		return core.FaultNotFound
	}
	return core.FaultInvalid
}
