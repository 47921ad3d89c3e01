// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// foreign is a plugin as another language writes it: generated messages, gRPC's
// own codec and limits, and nothing but some of the service's methods.
func foreign(subscribe func(s grpc.ServerStream) error, describe error) *grpc.Server {
	g := grpc.NewServer()
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: "longshore.transport.v1.TransportService",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Describe",
			Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				var r pb.DescribeRequest
				if err := decode(&r); err != nil {
					return nil, err
				}
				return &pb.DescribeResponse{Name: r.GetHost()}, describe
			}}},
		Streams: []grpc.StreamDesc{{StreamName: "Subscribe", ClientStreams: true, ServerStreams: true,
			Handler: func(_ any, s grpc.ServerStream) error { return subscribe(s) }}},
	}, nil)
	return g
}

func TestPluginOfGeneratedCode(t *testing.T) {
	conn := serve(t, foreign(func(s grpc.ServerStream) error {
		var r pb.SubscribeRequest
		if err := s.RecvMsg(&r); err != nil || r.GetStart().GetRegistration().GetName() != "orders" {
			return status.Error(codes.InvalidArgument, "no start")
		}
		if err := s.SendMsg(&pb.SubscribeResponse{Part: &pb.SubscribeResponse_Deliveries{Deliveries: &pb.Deliveries{
			Items: []*pb.Delivery{{Id: 1, Name: "orders", Headers: []*pb.Header{{Name: "A", Value: []byte{0xff}}}, Payload: []byte("p")}}}}}); err != nil {
			return err
		}
		if err := s.RecvMsg(&r); err != nil || r.GetSettle().GetRuns()[0].GetKind() != pb.VerdictKind_VERDICT_KIND_ACK {
			return status.Error(codes.InvalidArgument, "no ack")
		}
		if err := s.RecvMsg(&r); !errors.Is(err, io.EOF) {
			return status.Error(codes.InvalidArgument, "no half-close")
		}
		return nil
	}, nil))
	l := link.NewClient(conn)
	if d, err := l.Describe(t.Context(), &pb.DescribeRequest{Host: "me"}); err != nil || d.GetName() != "me" {
		t.Errorf("Describe: %v, %v", d, err)
	}
	s, err := l.Subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&frame.SubscribeRequest{Start: &pb.SubscribeStart{Registration: &pb.Registration{Name: "orders"}}}); err != nil {
		t.Fatal(err)
	}
	var r frame.SubscribeResponse
	if err := s.Recv(&r); err != nil {
		t.Fatal(err)
	}
	d := r.Deliveries.Items[0]
	if d.ID != 1 || d.Message.Name != "orders" || d.Message.Headers[0].Value[0] != 0xff || string(d.Message.Payload) != "p" {
		t.Errorf("got %+v", d)
	}
	r.Deliveries.Release()
	if err := s.Send(&frame.SubscribeRequest{Settle: []frame.VerdictRun{{First: 1, Kind: core.VerdictAck}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := s.Recv(&r); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want io.EOF", err)
	}
	// What a plugin does not serve is unsupported, not a lost plugin.
	_, err = l.Request(t.Context(), &pb.RequestRequest{})
	if f := (*core.Fault)(nil); !errors.As(err, &f) || f.Code != core.FaultUnsupported {
		t.Errorf("got %T %v, want a FaultUnsupported", err, err)
	}
}

func TestStatusWithoutFault(t *testing.T) {
	tests := map[codes.Code]core.FaultCode{
		codes.InvalidArgument:    core.FaultInvalid,
		codes.Unimplemented:      core.FaultUnsupported,
		codes.NotFound:           core.FaultNotFound,
		codes.PermissionDenied:   core.FaultDenied,
		codes.Unauthenticated:    core.FaultDenied,
		codes.AlreadyExists:      core.FaultConflict,
		codes.FailedPrecondition: core.FaultConflict,
		codes.OutOfRange:         core.FaultTooLarge,
		codes.DeadlineExceeded:   core.FaultTimeout,
		codes.ResourceExhausted:  core.FaultExhausted,
		codes.Aborted:            core.FaultClosed,
		codes.Unknown:            core.FaultInternal,
		codes.DataLoss:           core.FaultInternal,
	}
	for code, want := range tests {
		t.Run(code.String(), func(t *testing.T) {
			l := link.NewClient(serve(t, foreign(nil, status.Error(code, "said in words"))))
			_, err := l.Describe(t.Context(), &pb.DescribeRequest{})
			checkFault(t, "Describe", &core.Fault{Code: want, Message: "said in words"}, err)
		})
	}
}

// TestForeignBytes sends what is no frame: the stream ends with a fault, the
// connection goes on.
func TestForeignBytes(t *testing.T) {
	conn := serve(t, foreign(func(s grpc.ServerStream) error {
		return s.SendMsg(&healthpb.HealthCheckRequest{Service: "\x01\x02"}) // field 1, read as Started
	}, nil))
	l := link.NewClient(conn)
	s, err := l.Subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = s.Recv(&frame.SubscribeResponse{})
	if f := (*core.Fault)(nil); !errors.As(err, &f) || f.Code != core.FaultInternal {
		t.Errorf("got %T %v, want a FaultInternal", err, err)
	}
	if _, err := l.Describe(t.Context(), &pb.DescribeRequest{}); err != nil {
		t.Error(err)
	}
}

// TestOtherServicesWorkAsBefore serves gRPC's health service beside frames.
func TestOtherServicesWorkAsBefore(t *testing.T) {
	g := grpc.NewServer(link.ServerOptions()...)
	link.Register(g, &server{})
	healthpb.RegisterHealthServer(g, health.NewServer())
	conn := serve(t, g)
	r, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || r.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestNoPluginIsLost(t *testing.T) {
	conn, err := grpc.NewClient("unix:"+t.TempDir()+"/none", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	l := link.NewClient(conn)
	var lost *link.LostError
	if _, err := l.Describe(t.Context(), &pb.DescribeRequest{}); !errors.As(err, &lost) {
		t.Errorf("got %T %v, want a LostError", err, err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Subscribe(t.Context()); !errors.As(err, &lost) {
		t.Errorf("after Close: got %T %v, want a LostError", err, err)
	}
}
