// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// serviceName is the service's full name in the protocol.
const serviceName = "longshore.transport.v1.TransportService"

// Register serves s on r, which was made with ServerOptions.
func Register(r grpc.ServiceRegistrar, s Server) { r.RegisterService(description(), s) }

// description is the service with its handlers. It is written by hand because
// its streams carry frames in place of generated messages.
func description() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: serviceName,
		HandlerType: (*Server)(nil),
		Metadata:    transportpb.File_longshore_transport_v1_transport_proto.Path(),
		Methods: []grpc.MethodDesc{
			method("Describe", Server.Describe),
			method("Configure", Server.Configure),
			method("Inspect", Server.Inspect),
			method("Connect", Server.Connect),
			method("Request", Server.Request),
			method("Close", Server.Close),
		},
		Streams: []grpc.StreamDesc{
			stream("Subscribe", func(s Server, g grpc.ServerStream) error { return s.Subscribe(&serverSubscribe{stream: g}) }),
			stream("Publish", func(s Server, g grpc.ServerStream) error { return s.Publish(&serverPublish{stream: g}) }),
			stream("Supervise", func(s Server, g grpc.ServerStream) error { return s.Supervise(&serverSupervise{stream: g}) }),
		},
	}
}

// message is a pointer to a generated message.
type message[T any] interface {
	*T
	proto.Message
}

// method serves a call with one answer.
func method[In, Out any, PIn message[In], POut message[Out]](
	name string, call func(s Server, ctx context.Context, r *In) (*Out, error),
) grpc.MethodDesc {
	serve := func(s Server, ctx context.Context, r *In) (any, error) {
		out, err := call(s, ctx, r)
		if err != nil {
			return nil, toStatus(err)
		}
		if f := checkAnswer(POut(out)); f != nil {
			return nil, toStatus(f)
		}
		return out, nil
	}
	handle := func(server any, ctx context.Context, decode func(any) error, through grpc.UnaryServerInterceptor) (any, error) {
		in := new(In)
		if err := decode(in); err != nil {
			return nil, err
		}
		s := server.(Server)
		if through == nil {
			return serve(s, ctx, in)
		}
		info := &grpc.UnaryServerInfo{Server: server, FullMethod: path(name)}
		return through(ctx, in, info, func(ctx context.Context, in any) (any, error) {
			return serve(s, ctx, in.(*In))
		})
	}
	return grpc.MethodDesc{MethodName: name, Handler: handle}
}

// stream serves a stream in both directions.
func stream(name string, serve func(s Server, g grpc.ServerStream) error) grpc.StreamDesc {
	return grpc.StreamDesc{
		StreamName:    name,
		ClientStreams: true,
		ServerStreams: true,
		Handler: func(server any, g grpc.ServerStream) error {
			if err := serve(server.(Server), g); err != nil {
				return toStatus(err)
			}
			return nil
		},
	}
}

// path is a method's path on the wire.
func path(method string) string { return "/" + serviceName + "/" + method }

// checkSize refuses a generated message that is over the wire's limit.
func checkSize(m proto.Message) error { return checkLimit(m, frame.MaxWireSize) }

// checkAnswer refuses what a plugin says where it is over its limit.
func checkAnswer(m proto.Message) error { return checkLimit(m, answerLimit(m)) }

// answerLimit is the limit of what a plugin says: a reply carries a message.
func answerLimit(m any) int {
	if _, ok := m.(*transportpb.RequestResponse); ok {
		return frame.MaxWireSize
	}
	return frame.MaxControl
}

func checkLimit(m proto.Message, limit int) error {
	if n := proto.Size(m); n > limit {
		return frame.TooLarge(string(m.ProtoReflect().Descriptor().Name())+" on the wire", n, limit)
	}
	return nil
}
