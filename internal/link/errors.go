// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// The most text of a fault that travels in a status: it is sent as HTTP/2
// trailers, which have a limit of their own.
const (
	maxMessage     = 16 << 10
	maxDiagnostics = 64
)

// AsFault returns the fault in err. Another error becomes an internal fault
// with its text, but for the ends of contexts, which have codes.
func AsFault(err error) *core.Fault {
	var f *core.Fault
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.Canceled):
		return &core.Fault{Code: core.FaultCanceled, Message: err.Error(), Transient: true}
	case errors.Is(err, context.DeadlineExceeded):
		return &core.Fault{Code: core.FaultTimeout, Message: err.Error(), Transient: true}
	}
	return &core.Fault{Code: core.FaultInternal, Message: err.Error()}
}

// toStatus is the error of an RPC: the fault as a detail, and the code that
// fits it best for readers that know gRPC alone.
func toStatus(err error) error {
	f := AsFault(err)
	if len(f.Message) > maxMessage || len(f.Diagnostics) > maxDiagnostics {
		short := *f
		short.Message = f.Message[:min(len(f.Message), maxMessage)]
		short.Diagnostics = f.Diagnostics[:min(len(f.Diagnostics), maxDiagnostics)]
		f = &short
	}
	p := convert.FromFault(f)
	for _, d := range p.GetDiagnostics() {
		d.Message = d.GetMessage()[:min(len(d.GetMessage()), maxMessage/16)]
		d.Fix = d.GetFix()[:min(len(d.GetFix()), maxMessage/16)]
		d.Message, d.Fix = convert.Text(d.Message), convert.Text(d.Fix)
	}
	st, err := status.New(toCode(f.Code), p.GetMessage()).WithDetails(p)
	if err != nil {
		return status.Error(codes.Internal, f.Message)
	}
	return st.Err()
}

// toCode is the gRPC code of a fault.
func toCode(c core.FaultCode) codes.Code {
	switch c {
	case core.FaultInvalid:
		return codes.InvalidArgument
	case core.FaultUnsupported:
		return codes.Unimplemented
	case core.FaultNotFound:
		return codes.NotFound
	case core.FaultDenied:
		return codes.PermissionDenied
	case core.FaultConflict:
		return codes.FailedPrecondition
	case core.FaultTooLarge:
		return codes.OutOfRange
	case core.FaultUnavailable:
		return codes.Unavailable
	case core.FaultTimeout:
		return codes.DeadlineExceeded
	case core.FaultCanceled:
		return codes.Canceled
	case core.FaultExhausted:
		return codes.ResourceExhausted
	case core.FaultClosed:
		return codes.Aborted
	default:
		return codes.Internal
	}
}

// fromCode is the fault of a status that carries none.
func fromCode(c codes.Code) core.FaultCode {
	switch c {
	case codes.InvalidArgument:
		return core.FaultInvalid
	case codes.Unimplemented:
		return core.FaultUnsupported
	case codes.NotFound:
		return core.FaultNotFound
	case codes.PermissionDenied, codes.Unauthenticated:
		return core.FaultDenied
	case codes.FailedPrecondition, codes.AlreadyExists:
		return core.FaultConflict
	case codes.OutOfRange:
		return core.FaultTooLarge
	case codes.DeadlineExceeded:
		return core.FaultTimeout
	case codes.ResourceExhausted:
		return core.FaultExhausted
	case codes.Aborted:
		return core.FaultClosed
	default:
		return core.FaultInternal
	}
}

// fromRPC is what the host sees of an error of gRPC: the context's error where
// that ended, the plugin's fault where it answered, and a *LostError where the
// connection broke or was closed on this side. A plugin that answers
// UNAVAILABLE or CANCELLED itself sends a fault along, which tells them apart.
func fromRPC(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	st, _ := status.FromError(err)
	for _, detail := range st.Details() {
		if f, ok := detail.(*transportpb.Fault); ok {
			return convert.ToFault(f)
		}
	}
	if err := ended(ctx); err != nil {
		return err
	}
	if st.Code() == codes.Unavailable || st.Code() == codes.Canceled {
		return &LostError{Cause: err}
	}
	return &core.Fault{Code: fromCode(st.Code()), Message: st.Message()}
}

// ended is the error of a context that has ended. A deadline counts from its
// time on: what it does at the other end can arrive before the timer here.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d, ok := ctx.Deadline(); ok && !d.After(time.Now()) {
		return context.DeadlineExceeded
	}
	return nil
}

// errGone is what a plugin's side of a stream says when the host is gone. It is
// context.Canceled, as is the error of a stream that the host cancelled.
var errGone = fmt.Errorf("host is gone: %w", context.Canceled)

// fromHost is what a plugin sees of an error of its stream: io.EOF, the end of
// the stream's context, or the fault of a frame that could not be read.
func fromHost(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	st, _ := status.FromError(err)
	switch st.Code() {
	case codes.Unavailable, codes.Canceled:
		return errGone
	case codes.ResourceExhausted:
		return &core.Fault{Code: core.FaultTooLarge, Message: st.Message()}
	default:
		return &core.Fault{Code: core.FaultInvalid, Message: st.Message()}
	}
}
