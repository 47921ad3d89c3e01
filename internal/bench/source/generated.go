// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// Method is a path of the service on the wire.
func Method(name string) string { return "/longshore.transport.v1.TransportService/" + name }

// RegisterGenerated serves the source with generated messages and gRPC's own
// codec, as a plugin in another language does.
func RegisterGenerated(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: "longshore.transport.v1.TransportService",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Request", Handler: generatedRequest}},
		Streams: []grpc.StreamDesc{{
			StreamName: "Subscribe", ClientStreams: true, ServerStreams: true,
			Handler: func(_ any, s grpc.ServerStream) error { return generatedSubscribe(s) },
		}},
	}, nil)
}

//nolint:revive // the signature is gRPC's
func generatedRequest(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	var r transportpb.RequestRequest
	if err := decode(&r); err != nil {
		return nil, err
	}
	m, err := usedMessage()
	return &transportpb.RequestResponse{Reply: convert.FromMessage(m)}, err
}

func generatedSubscribe(s grpc.ServerStream) error {
	var r transportpb.SubscribeRequest
	if err := s.RecvMsg(&r); err != nil {
		return err
	}
	var o Options
	if err := json.Unmarshal(r.GetStart().GetRegistration().GetOptions(), &o); err != nil {
		return err
	}
	started := &transportpb.Started{Profiles: convert.FromProfiles(o.profiles())}
	if err := s.SendMsg(&transportpb.SubscribeResponse{Part: &transportpb.SubscribeResponse_Started{Started: started}}); err != nil {
		return err
	}
	w := newWindow()
	sent := make(chan error, 1)
	go func() { sent <- generatedDeliver(s, w, o) }()
	for {
		r := &transportpb.SubscribeRequest{}
		err := s.RecvMsg(r)
		if err != nil {
			w.stop()
			if sendErr := <-sent; errors.Is(err, io.EOF) {
				return sendErr
			}
			return err
		}
		switch part := r.GetPart().(type) {
		case *transportpb.SubscribeRequest_Credit:
			w.set(part.Credit.GetMessages())
		case *transportpb.SubscribeRequest_Stop:
			w.stop()
		case *transportpb.SubscribeRequest_Settle:
			n := uint64(0)
			for _, run := range part.Settle.GetRuns() {
				n += max(run.GetCount(), 1)
			}
			w.settle(n)
		}
	}
}

func generatedDeliver(s grpc.ServerStream, w *window, o Options) error {
	messages := o.Messages()
	p := newPace(o)
	defer p.stop()
	for id := uint64(1); ; {
		at, ok := p.wait(s.Context())
		if !ok {
			return nil
		}
		n := w.take(o.Frame, s.Context().Done())
		if n == 0 {
			return s.SendMsg(&transportpb.SubscribeResponse{Part: &transportpb.SubscribeResponse_Ended{Ended: &transportpb.Ended{}}})
		}
		for n > 0 {
			ds := &transportpb.Deliveries{}
			for size := 0; n > 0 && size < frame.MaxBytes; n-- {
				m := messages[id%distinct]
				ds.Items = append(ds.Items, &transportpb.Delivery{
					Id: id, Name: m.Name, Headers: convert.FromHeaders(m.Headers), Payload: m.Payload, Attempt: 1, PublishedAt: at,
				})
				size += frame.Weight(&m)
				id++
			}
			if err := s.SendMsg(&transportpb.SubscribeResponse{Part: &transportpb.SubscribeResponse_Deliveries{Deliveries: ds}}); err != nil {
				return err
			}
		}
	}
}
