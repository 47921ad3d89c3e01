// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"cmp"
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers what rawCodec wraps
	"google.golang.org/grpc/mem"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/handshake"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// hostile is a plugin that breaks the rules of the protocol: without the SDK,
// reached as one that was started by hand. Functions that are nil keep to them.
type hostile struct {
	describe  func() any
	inspect   func(*pb.InspectRequest) any
	subscribe func(*hostileStream) // after Start
	publish   func(grpc.ServerStream) error
	addresses []string // where it says that it listens

	connectLimit, drainLimit time.Duration // of the host; 0 = the tests' patience
}

// hostileStream is one subscription's stream.
type hostileStream struct{ grpc.ServerStream }

// send sends a part, or bytes as they are.
func (s *hostileStream) send(m any) bool {
	if _, raw := m.([]byte); !raw {
		m = part(m)
	}
	return s.SendMsg(m) == nil
}

func part(p any) *pb.SubscribeResponse {
	r := &pb.SubscribeResponse{}
	switch v := p.(type) {
	case *pb.Started:
		r.Part = &pb.SubscribeResponse_Started{Started: v}
	case *pb.Deliveries:
		r.Part = &pb.SubscribeResponse_Deliveries{Deliveries: v}
	case *pb.Settled:
		r.Part = &pb.SubscribeResponse_Settled{Settled: v}
	case *pb.Void:
		r.Part = &pb.SubscribeResponse_Void{Void: v}
	case *pb.Report:
		r.Part = &pb.SubscribeResponse_Report{Report: v}
	case *pb.Ended:
		r.Part = &pb.SubscribeResponse_Ended{Ended: v}
	default:
		panic("no part")
	}
	return r
}

// deliver sends deliveries with these ids.
func (s *hostileStream) deliver(ids ...uint64) bool {
	d := &pb.Deliveries{}
	for _, id := range ids {
		d.Items = append(d.Items, &pb.Delivery{Id: id, Name: "q", Payload: []byte("x")})
	}
	return s.send(d)
}

// next waits for what the host says; nil is the end.
func (s *hostileStream) next() *pb.SubscribeRequest {
	r := &pb.SubscribeRequest{}
	if s.RecvMsg(r) != nil {
		return nil
	}
	return r
}

// credit waits for the first credit.
func (s *hostileStream) credit() uint64 {
	for r := s.next(); r != nil; r = s.next() {
		if c := r.GetCredit(); c != nil {
			return c.GetMessages()
		}
	}
	return 0
}

// serve answers verdicts and ends with Stop, as it should.
func (s *hostileStream) serve() {
	for r := s.next(); r != nil; r = s.next() {
		if r.GetStop() != nil {
			s.send(&pb.Ended{})
		}
		out := &pb.Settled{}
		for _, run := range r.GetSettle().GetRuns() {
			status := pb.SettleStatus_SETTLE_STATUS_DONE
			if run.GetFirst() == 0 {
				status = pb.SettleStatus_SETTLE_STATUS_STALE
			}
			if run.GetWantResult() {
				out.Results = append(out.Results, &pb.SettleResult{First: run.GetFirst(), Count: max(run.GetCount(), 1), Status: status})
			}
		}
		if len(out.Results) > 0 {
			s.send(out)
		}
	}
}

// rawCodec sends []byte as it is.
type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// unary adds a call.
func unary[In any](d *grpc.ServiceDesc, name string, f func(*In) any) {
	d.Methods = append(d.Methods, grpc.MethodDesc{
		MethodName: name,
		Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(In)
			if err := decode(in); err != nil {
				return nil, err
			}
			return f(in), nil
		},
	})
}

// hostileProfile is what its deliveries can do; the second one counts them.
func hostileProfile() []*pb.Capabilities {
	profile := func(counts pb.CountMode) *pb.Capabilities {
		return &pb.Capabilities{
			Ack: pb.AckMode_ACK_MODE_SINGLE, Requeue: pb.RequeueMode_REQUEUE_MODE_NOW, Counts: counts, Address: "q",
			Unsettled: pb.Unsettled_UNSETTLED_ON_DISCONNECT, Durable: true,
		}
	}
	return []*pb.Capabilities{profile(pb.CountMode_COUNT_MODE_UNSPECIFIED), profile(pb.CountMode_COUNT_MODE_NATIVE)}
}

// inspected is an answer to Inspect that keeps to the protocol.
func inspected(r *pb.InspectRequest) *pb.InspectResponse {
	out := &pb.InspectResponse{}
	for range r.GetRegistrations() {
		out.Registrations = append(out.Registrations, &pb.RegistrationReport{Profiles: hostileProfile()})
	}
	for range r.GetDestinations() {
		out.Destinations = append(out.Destinations, &pb.TargetReport{Publishing: hostilePublishing()})
	}
	return out
}

func hostilePublishing() *pb.Publishing {
	return &pb.Publishing{
		Confirms: pb.Confirm_CONFIRM_STORED, Retains: pb.Retention_RETENTION_TRANSPORT,
		Headers: pb.HeaderMode_HEADER_MODE_NATIVE_BYTES,
	}
}

// service is the plugin's service.
func (h *hostile) service() *grpc.ServiceDesc {
	d := &grpc.ServiceDesc{ServiceName: "longshore.transport.v1.TransportService", HandlerType: (*any)(nil)}
	unary(d, "Describe", func(*pb.DescribeRequest) any {
		if h.describe != nil {
			return h.describe()
		}
		return &pb.DescribeResponse{Name: "hostile", Version: "1", Ceilings: hostileProfile(), Publishing: hostilePublishing()}
	})
	unary(d, "Configure", func(*pb.ConfigureRequest) any { return &pb.ConfigureResponse{} })
	unary(d, "Inspect", func(r *pb.InspectRequest) any {
		if h.inspect != nil {
			return h.inspect(r)
		}
		return inspected(r)
	})
	unary(d, "Connect", func(*pb.ConnectRequest) any { return &pb.ConnectResponse{Addresses: h.addresses} })
	unary(d, "Close", func(*pb.CloseRequest) any { return &pb.CloseResponse{} })
	stream := func(name string, f func(s grpc.ServerStream) error) {
		d.Streams = append(d.Streams, grpc.StreamDesc{
			StreamName: name, ClientStreams: true, ServerStreams: true,
			Handler: func(_ any, s grpc.ServerStream) error { return f(s) },
		})
	}
	stream("Subscribe", func(g grpc.ServerStream) error {
		s := &hostileStream{g}
		s.next() // Start
		if h.subscribe != nil {
			h.subscribe(s)
			return nil
		}
		s.send(&pb.Started{Profiles: hostileProfile()})
		s.serve()
		return nil
	})
	stream("Publish", func(s grpc.ServerStream) error {
		if h.publish != nil {
			return h.publish(s)
		}
		return untilItsEnd(s)
	})
	stream("Supervise", untilItsEnd)
	return d
}

// untilItsEnd takes what the host says and answers nothing.
func untilItsEnd(s grpc.ServerStream) error {
	for s.RecvMsg(&pb.SuperviseRequest{}) == nil {
	}
	return nil
}

// serve lets endpoints of the transport hostile attach to h.
func (h *hostile) serve(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ls-h-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "socket")
	lis, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	const limit = 80 << 20 // the host's own is lower
	g := grpc.NewServer(grpc.MaxSendMsgSize(limit), grpc.ForceServerCodecV2(rawCodec{encoding.GetCodecV2("proto")}))
	g.RegisterService(h.service(), h)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Serve(lis)
	}()
	t.Cleanup(func() {
		g.Stop()
		<-done
	})
	t.Setenv(handshake.EnvReattach, "hostile="+path)
}

// attach returns a host with an endpoint on h, which gives it up at its first
// crash.
func (h *hostile) attach(t *testing.T) (*service, *host.Endpoint) {
	t.Helper()
	h.serve(t)
	s := newService(host.WithBreaker(1, time.Minute), host.WithConnectLimit(cmp.Or(h.connectLimit, patience)), host.WithDrainLimit(cmp.Or(h.drainLimit, patience)))
	return s, s.Endpoint("evil", host.Plugin{Name: "hostile"}, nil)
}
