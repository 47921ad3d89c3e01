// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// service is what generated stubs would be.
func service() *grpc.ServiceDesc {
	d := &grpc.ServiceDesc{ServiceName: "longshore.transport.v1.TransportService", HandlerType: (*any)(nil)}
	unary(d, "Describe", (*plugin).describe)
	unary(d, "Configure", (*plugin).configure)
	unary(d, "Inspect", (*plugin).inspect)
	unary(d, "Connect", (*plugin).connect)
	unary(d, "Request", (*plugin).request)
	unary(d, "Close", (*plugin).close)
	for name, serve := range map[string]func(*plugin, grpc.ServerStream) error{
		"Subscribe": (*plugin).subscribe, "Publish": (*plugin).publish, "Supervise": (*plugin).supervise,
	} {
		d.Streams = append(d.Streams, grpc.StreamDesc{
			StreamName: name, ClientStreams: true, ServerStreams: true,
			Handler: func(p any, s grpc.ServerStream) error { return asStatus(serve(p.(*plugin), s)) },
		})
	}
	return d
}

func unary[In, Out any](d *grpc.ServiceDesc, name string, call func(*plugin, context.Context, *In) (*Out, error)) {
	d.Methods = append(d.Methods, grpc.MethodDesc{
		MethodName: name,
		Handler: func(p any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(In)
			if err := decode(in); err != nil {
				return nil, err
			}
			out, err := call(p.(*plugin), ctx, in)
			if err != nil {
				return nil, asStatus(err)
			}
			return out, nil
		},
	})
}

// refusal is a fault as a Go error.
type refusal struct{ *pb.Fault }

func (r *refusal) Error() string { return r.GetMessage() }

// codesOf are the gRPC codes of faults; others are internal.
var codesOf = map[pb.FaultCode]codes.Code{
	pb.FaultCode_FAULT_CODE_INVALID:     codes.InvalidArgument,
	pb.FaultCode_FAULT_CODE_UNSUPPORTED: codes.Unimplemented,
	pb.FaultCode_FAULT_CODE_NOT_FOUND:   codes.NotFound,
	pb.FaultCode_FAULT_CODE_DENIED:      codes.PermissionDenied,
	pb.FaultCode_FAULT_CODE_CONFLICT:    codes.FailedPrecondition,
	pb.FaultCode_FAULT_CODE_TOO_LARGE:   codes.OutOfRange,
	pb.FaultCode_FAULT_CODE_UNAVAILABLE: codes.Unavailable,
	pb.FaultCode_FAULT_CODE_TIMEOUT:     codes.DeadlineExceeded,
	pb.FaultCode_FAULT_CODE_CANCELED:    codes.Canceled,
	pb.FaultCode_FAULT_CODE_EXHAUSTED:   codes.ResourceExhausted,
	pb.FaultCode_FAULT_CODE_CLOSED:      codes.Aborted,
}

// asStatus puts the fault into the details of a status.
func asStatus(err error) error {
	var r *refusal
	if !errors.As(err, &r) {
		return err
	}
	code, ok := codesOf[r.GetCode()]
	if !ok {
		code = codes.Internal
	}
	st, err := status.New(code, r.GetMessage()).WithDetails(r.Fault)
	if err != nil {
		return err
	}
	return st.Err()
}

// orderly is nil for the host's half-close.
func orderly(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
