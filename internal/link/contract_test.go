// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

func TestCalls(t *testing.T) {
	kinds(t, func(t *testing.T, open opener) {
		l, _ := open(t, &server{})
		ctx := t.Context()
		d, err := l.Describe(ctx, &pb.DescribeRequest{Host: "longshore 1"})
		if err != nil || d.GetName() != "test" || d.GetVersion() != "longshore 1" {
			t.Errorf("Describe: %v, %v", d, err)
		}
		c, err := l.Configure(ctx, &pb.ConfigureRequest{Endpoint: "in"})
		if err != nil || c.GetFault().GetMessage() != "in" {
			t.Errorf("Configure: %v, %v", c, err)
		}
		i, err := l.Inspect(ctx, &pb.InspectRequest{Registrations: []*pb.Registration{{Name: "a"}, {Name: "b"}}})
		if err != nil || len(i.GetRegistrations()) != 2 {
			t.Errorf("Inspect: %v, %v", i, err)
		}
		n, err := l.Connect(ctx, &pb.ConnectRequest{Resume: []byte("r")})
		if err != nil || string(n.GetResume()) != "r" {
			t.Errorf("Connect: %v, %v", n, err)
		}
		e, err := l.Close(ctx, &pb.CloseRequest{})
		if err != nil || string(e.GetResume()) != "port 4711" {
			t.Errorf("Close: %v, %v", e, err)
		}
	})
}

func TestErrorsCrossWhole(t *testing.T) {
	whole := &core.Fault{Code: core.FaultDenied, Message: "the broker refuses us", Transient: true, RetryAfter: time.Second,
		Diagnostics: []core.Diagnostic{{Path: "tls.ca_file", Message: "missing", Fix: "set it"}, {Path: "user"}}}
	tests := []struct {
		name string
		err  error
		want *core.Fault
	}{
		{"fault", whole, whole},
		{"wrapped fault", fmt.Errorf("request: %w", whole), whole},
		{"unavailable is an answer", &core.Fault{Code: core.FaultUnavailable, Message: "down"}, &core.Fault{Code: core.FaultUnavailable, Message: "down"}},
		{"canceled is an answer", &core.Fault{Code: core.FaultCanceled, Message: "cut"}, &core.Fault{Code: core.FaultCanceled, Message: "cut"}},
		{"plain error", errors.New("boom"), &core.Fault{Code: core.FaultInternal, Message: "boom"}},
		{"timeout", context.DeadlineExceeded, &core.Fault{Code: core.FaultTimeout, Message: "context deadline exceeded", Transient: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			kinds(t, func(t *testing.T, open opener) {
				l, _ := open(t, &server{
					request:   func(context.Context, *pb.RequestRequest) (*pb.RequestResponse, error) { return nil, test.err },
					subscribe: func(link.ServerSubscribeStream) error { return test.err },
				})
				_, err := l.Request(t.Context(), &pb.RequestRequest{})
				checkFault(t, "call", test.want, err)
				s, err := l.Subscribe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				checkFault(t, "stream", test.want, s.Recv(&frame.SubscribeResponse{}))
			})
		})
	}
}

func checkFault(t *testing.T, what string, want *core.Fault, err error) {
	t.Helper()
	var got *core.Fault
	if !errors.As(err, &got) {
		t.Errorf("%s: got %T %v, want a fault", what, err, err)
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

// TestSubscription runs a stream from Start to EOF: half-close lets the server
// answer to the end.
func TestSubscription(t *testing.T) {
	kinds(t, func(t *testing.T, open opener) {
		heard := make(chan []frame.VerdictRun, 1)
		l, _ := open(t, &server{subscribe: func(s link.ServerSubscribeStream) error {
			var r frame.SubscribeRequest
			if err := s.Recv(&r); err != nil || r.Start.GetRegistration().GetName() != "orders" {
				return fmt.Errorf("first message is %v, %w", r, err)
			}
			if err := s.Send(&frame.SubscribeResponse{Started: &pb.Started{Profiles: []*pb.Capabilities{{Extend: true}}}}); err != nil {
				return err
			}
			if err := s.Recv(&r); err != nil || *r.Credit != (frame.Credit{Messages: 10, Bytes: 1 << 20}) {
				return fmt.Errorf("second message is %v, %w", r, err)
			}
			d := frame.NewDeliveries()
			d.Items = append(d.Items, frame.Delivery{ID: 1, Message: core.Message{Name: "orders", Payload: []byte("one")}}, frame.Delivery{ID: 2})
			if err := s.Send(&frame.SubscribeResponse{Deliveries: d}); err != nil {
				return err
			}
			for {
				err := s.Recv(&r)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					return err
				}
				heard <- append([]frame.VerdictRun(nil), r.Settle...)
			}
			if err := s.Send(&frame.SubscribeResponse{Settled: []frame.SettleResult{{First: 2, Status: frame.SettleStale}}}); err != nil {
				return err
			}
			return s.Send(&frame.SubscribeResponse{Ended: &pb.Ended{}})
		}})
		s, err := l.Subscribe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		send := func(r *frame.SubscribeRequest) {
			t.Helper()
			if err := s.Send(r); err != nil {
				t.Fatal(err)
			}
		}
		var r frame.SubscribeResponse
		recv := func() {
			t.Helper()
			if err := s.Recv(&r); err != nil {
				t.Fatal(err)
			}
		}
		send(&frame.SubscribeRequest{Start: &pb.SubscribeStart{Registration: &pb.Registration{Name: "orders"}}})
		if recv(); !r.Started.GetProfiles()[0].GetExtend() {
			t.Errorf("got %+v, want Started", r)
		}
		send(&frame.SubscribeRequest{Credit: &frame.Credit{Messages: 10, Bytes: 1 << 20}})
		recv()
		if len(r.Deliveries.Items) != 2 || string(r.Deliveries.Items[0].Message.Payload) != "one" || r.Deliveries.Items[1].ID != 2 {
			t.Errorf("got %+v, want two deliveries", r.Deliveries)
		}
		r.Deliveries.Release()
		runs := []frame.VerdictRun{{First: 1, Kind: core.VerdictAck}, {First: 2, Kind: core.VerdictReject, Reason: "bad", WantResult: true}}
		want := append([]frame.VerdictRun(nil), runs...)
		send(&frame.SubscribeRequest{Settle: runs})
		clear(runs) // nothing of a request is kept
		if err := s.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, <-heard); d != "" {
			t.Error(d)
		}
		if recv(); len(r.Settled) != 1 || r.Settled[0].Status != frame.SettleStale {
			t.Errorf("got %+v, want a stale result", r)
		}
		if recv(); r.Ended == nil {
			t.Errorf("got %+v, want Ended", r)
		}
		if err := s.Recv(&r); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want io.EOF", err)
		}
		if err := s.Recv(&r); !errors.Is(err, io.EOF) {
			t.Errorf("again got %v, want io.EOF", err)
		}
	})
}

func TestPublishing(t *testing.T) {
	kinds(t, func(t *testing.T, open opener) {
		l, _ := open(t, &server{publish: func(s link.ServerPublishStream) error {
			for {
				p, err := s.Recv()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				if len(p.Items) > frame.MaxItems {
					return fmt.Errorf("frame of %d messages", len(p.Items))
				}
				rs := make([]frame.Receipt, 0, len(p.Items))
				for _, o := range p.Items {
					rs = append(rs, frame.Receipt{ID: o.ID, Status: frame.ReceiptConfirmed, Position: bytes.Clone(o.Message.Payload)})
				}
				p.Release()
				if err := s.Send(rs); err != nil {
					return err
				}
			}
		}})
		s, err := l.Publish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const n = 1000 // more than a frame holds
		p := frame.NewPublishes()
		for i := range n {
			p.Items = append(p.Items, frame.Outgoing{ID: uint64(i + 1), Message: core.Message{Payload: fmt.Append(nil, i)}})
		}
		if err := s.Send(p); err != nil {
			t.Fatal(err)
		}
		if err := s.CloseSend(); err != nil {
			t.Fatal(err)
		}
		var rs []frame.Receipt
		for err == nil {
			rs, err = s.Recv(rs)
		}
		if !errors.Is(err, io.EOF) || len(rs) != n {
			t.Fatalf("got %d receipts and %v", len(rs), err)
		}
		for i, r := range rs {
			if r.ID != uint64(i+1) || string(r.Position) != fmt.Sprint(i) {
				t.Fatalf("receipt %d is %+v", i, r)
			}
		}
	})
}

func TestSupervision(t *testing.T) {
	kinds(t, func(t *testing.T, open opener) {
		l, _ := open(t, &server{supervise: func(s link.ServerSuperviseStream) error {
			for {
				r, err := s.Recv()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				if err := s.Send(&pb.SuperviseResponse{Part: &pb.SuperviseResponse_Beat{Beat: r.GetBeat()}}); err != nil {
					return err
				}
			}
		}})
		s, err := l.Supervise(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for beat := range uint64(3) {
			if err := s.Send(&pb.SuperviseRequest{Part: &pb.SuperviseRequest_Beat{Beat: beat}}); err != nil {
				t.Fatal(err)
			}
			r, err := s.Recv()
			if err != nil || r.GetBeat() != beat {
				t.Fatalf("got %v, %v, want %d", r, err, beat)
			}
		}
		if err := s.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want io.EOF", err)
		}
	})
}

func TestWhatWasSentBeforeAnErrorArrives(t *testing.T) {
	kinds(t, func(t *testing.T, open opener) {
		l, _ := open(t, &server{subscribe: func(s link.ServerSubscribeStream) error {
			for i := range 5 {
				if err := s.Send(&frame.SubscribeResponse{Void: &pb.Void{First: uint64(i)}}); err != nil {
					return err
				}
			}
			return &core.Fault{Code: core.FaultConflict, Message: "taken"}
		}})
		s, err := l.Subscribe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var r frame.SubscribeResponse
		for i := range 5 {
			if err := s.Recv(&r); err != nil || r.Void.GetFirst() != uint64(i) {
				t.Fatalf("message %d: %v, %v", i, r, err)
			}
		}
		checkFault(t, "end", &core.Fault{Code: core.FaultConflict, Message: "taken"}, s.Recv(&r))
		// The sender learns that the stream is over, not why.
		within(t, "send", func() {
			for {
				if err := s.Send(&frame.SubscribeRequest{Stop: true}); err != nil {
					if !errors.Is(err, io.EOF) {
						t.Errorf("got %v, want io.EOF", err)
					}
					return
				}
			}
		})
	})
}
