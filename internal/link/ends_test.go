// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

func TestCancelEndsAStream(t *testing.T) {
	kinds(t, func(t *testing.T, open opener) {
		ended := make(chan error, 1)
		l, _ := open(t, &server{subscribe: func(s link.ServerSubscribeStream) error {
			if err := s.Send(&frame.SubscribeResponse{CaughtUp: true}); err != nil {
				return err
			}
			err := s.Recv(&frame.SubscribeRequest{})
			if s.Context().Err() == nil {
				err = errors.Join(err, errors.New("the context is alive"))
			}
			ended <- err
			return err
		}})
		ctx, cancel := context.WithCancel(t.Context())
		s, err := l.Subscribe(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Recv(&frame.SubscribeResponse{}); err != nil {
			t.Fatal(err)
		}
		cancel()
		within(t, "host", func() {
			if err := s.Recv(&frame.SubscribeResponse{}); !errors.Is(err, context.Canceled) {
				t.Errorf("host got %T %v, want context.Canceled", err, err)
			}
		})
		within(t, "plugin", func() {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("plugin got %T %v, want context.Canceled", err, err)
			}
		})
	})
}

func TestDeadlineEndsACall(t *testing.T) {
	kinds(t, func(t *testing.T, open opener) {
		stuck := make(chan struct{})
		l, _ := open(t, &server{request: func(context.Context, *pb.RequestRequest) (*pb.RequestResponse, error) {
			<-stuck // deaf to its context
			return nil, nil
		}})
		t.Cleanup(func() { close(stuck) })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		within(t, "call", func() {
			if _, err := l.Request(ctx, &pb.RequestRequest{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %T %v, want context.DeadlineExceeded", err, err)
			}
		})
	})
}

func TestDeathIsLost(t *testing.T) {
	kinds(t, func(t *testing.T, open opener) {
		busy, gone := make(chan struct{}, 3), make(chan struct{}, 3)
		l, die := open(t, &server{
			request: func(ctx context.Context, _ *pb.RequestRequest) (*pb.RequestResponse, error) {
				busy <- struct{}{}
				<-ctx.Done()
				gone <- struct{}{}
				return nil, ctx.Err()
			},
			subscribe: func(s link.ServerSubscribeStream) error {
				busy <- struct{}{}
				<-s.Context().Done()
				gone <- struct{}{}
				return s.Context().Err()
			},
			publish: func(s link.ServerPublishStream) error {
				busy <- struct{}{}
				_, err := s.Recv()
				gone <- struct{}{}
				return err
			},
		})
		lost := func(what string, err error) {
			t.Helper()
			if l := (*link.LostError)(nil); !errors.As(err, &l) {
				t.Errorf("%s: got %T %v, want a LostError", what, err, err)
			}
		}
		sub, err := l.Subscribe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out, err := l.Publish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := l.Request(t.Context(), &pb.RequestRequest{})
			lost("call", err)
		})
		wg.Go(func() { lost("subscription", sub.Recv(&frame.SubscribeResponse{})) })
		wg.Go(func() {
			_, err := out.Recv(nil)
			lost("publish", err)
		})
		within(t, "all three", func() {
			for range 3 {
				<-busy
			}
		})
		die()
		within(t, "host", wg.Wait)
		within(t, "plugin", func() {
			for range 3 {
				<-gone
			}
		})
		_, err = l.Describe(t.Context(), &pb.DescribeRequest{})
		lost("after death", err)
		if err := sub.Send(&frame.SubscribeRequest{Stop: true}); err == nil {
			t.Error("sent to the dead")
		}
	})
}

// TestOverLimit is L-06: what is over a limit is refused before it is sent, with
// size and limit, and the stream goes on.
func TestOverLimit(t *testing.T) {
	large := make([]byte, frame.MaxPayload+1)
	kinds(t, func(t *testing.T, open opener) {
		refusals := make(chan error, 2)
		l, _ := open(t, &server{
			subscribe: func(s link.ServerSubscribeStream) error {
				d := frame.NewDeliveries()
				d.Items = append(d.Items, frame.Delivery{ID: 1}, frame.Delivery{ID: 2, Message: core.Message{Payload: large}})
				refusals <- s.Send(&frame.SubscribeResponse{Deliveries: d})
				return s.Send(&frame.SubscribeResponse{CaughtUp: true})
			},
			publish: func(s link.ServerPublishStream) error {
				p, err := s.Recv()
				if err != nil {
					return err
				}
				defer p.Release()
				return s.Send([]frame.Receipt{{ID: p.Items[0].ID}})
			},
			request: func(_ context.Context, r *pb.RequestRequest) (*pb.RequestResponse, error) {
				return &pb.RequestResponse{Reply: &pb.Message{Payload: make([]byte, r.GetTimeout())}}, nil
			},
		})
		tooLarge := func(what string, err error) {
			t.Helper()
			var f *core.Fault
			if !errors.As(err, &f) || f.Code != core.FaultTooLarge {
				t.Errorf("%s: got %T %v, want a FaultTooLarge", what, err, err)
			}
		}
		sub, err := l.Subscribe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var r frame.SubscribeResponse
		if err := sub.Recv(&r); err != nil || !r.CaughtUp {
			t.Errorf("after the refusal: %+v, %v", r, err)
		}
		tooLarge("delivery", <-refusals)

		out, err := l.Publish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p := frame.NewPublishes()
		p.Items = append(p.Items, frame.Outgoing{ID: 1}, frame.Outgoing{ID: 2, Message: core.Message{Payload: large}})
		tooLarge("publish", out.Send(p))
		p = frame.NewPublishes()
		p.Items = append(p.Items, frame.Outgoing{ID: 3})
		if err := out.Send(p); err != nil {
			t.Fatal(err)
		}
		if rs, err := out.Recv(nil); err != nil || len(rs) != 1 || rs[0].ID != 3 {
			t.Errorf("after the refusal: %+v, %v", rs, err)
		}

		_, err = l.Request(t.Context(), &pb.RequestRequest{Outgoing: &pb.Outgoing{Payload: make([]byte, frame.MaxWireSize)}})
		tooLarge("call", err)
		_, err = l.Request(t.Context(), &pb.RequestRequest{Timeout: frame.MaxWireSize})
		tooLarge("answer", err)
	})
}

// What a plugin says beside messages has a smaller limit: few bytes of it can be
// much memory.
func TestOverLimitOfControl(t *testing.T) {
	many := []*pb.Capabilities{{Address: strings.Repeat("a", frame.MaxControl)}}
	kinds(t, func(t *testing.T, open opener) {
		refusals := make(chan error, 2)
		l, _ := open(t, &server{
			describe: func(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
				return &pb.DescribeResponse{Ceilings: many}, nil
			},
			subscribe: func(s link.ServerSubscribeStream) error {
				refusals <- s.Send(&frame.SubscribeResponse{Started: &pb.Started{Profiles: many}})
				return s.Send(&frame.SubscribeResponse{CaughtUp: true})
			},
			supervise: func(s link.ServerSuperviseStream) error {
				refusals <- s.Send(&pb.SuperviseResponse{Part: &pb.SuperviseResponse_Resume{Resume: make([]byte, frame.MaxControl)}})
				return nil
			},
		})
		tooLarge := func(what string, err error) {
			t.Helper()
			var f *core.Fault
			if !errors.As(err, &f) || f.Code != core.FaultTooLarge {
				t.Errorf("%s: got %T %v, want a FaultTooLarge", what, err, err)
			}
		}
		_, err := l.Describe(t.Context(), &pb.DescribeRequest{})
		tooLarge("Describe", err)
		sub, err := l.Subscribe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var r frame.SubscribeResponse
		if err := sub.Recv(&r); err != nil || !r.CaughtUp {
			t.Errorf("after the refusal: %+v, %v", r, err)
		}
		tooLarge("Started", <-refusals)
		if _, err := l.Supervise(t.Context()); err != nil {
			t.Fatal(err)
		}
		tooLarge("Supervise", <-refusals)
	})
}

// TestLargest is L-06: messages above gRPC's own limit cross in both directions
// as they are.
func TestLargest(t *testing.T) {
	bytesOf := func(n int) []byte { return bytes.Repeat([]byte("longshore"), n/9+1)[:n] }
	headers := make(core.Headers, 3000)
	for i := range headers {
		headers[i] = core.Header{Name: fmt.Sprint("header-", i), Value: bytesOf(350)}
	}
	for name, message := range map[string]core.Message{
		"3 MiB":                 {Payload: bytesOf(3 << 20)},
		"5 MiB":                 {Payload: bytesOf(5 << 20)},
		"64 MiB":                {Payload: bytesOf(frame.MaxPayload)},
		"1 MiB in 3000 headers": {Name: "orders", Headers: headers},
	} {
		t.Run(name, func(t *testing.T) {
			kinds(t, func(t *testing.T, open opener) { crossBoth(t, open, message) })
		})
	}
}

// crossBoth sends a message from the plugin and back, small ones around it.
func crossBoth(t *testing.T, open opener, message core.Message) {
	t.Helper()
	l, _ := open(t, &server{
		subscribe: func(s link.ServerSubscribeStream) error {
			d := frame.NewDeliveries()
			d.Items = append(d.Items, frame.Delivery{ID: 1}, frame.Delivery{ID: 2, Message: message}, frame.Delivery{ID: 3})
			return s.Send(&frame.SubscribeResponse{Deliveries: d})
		},
		publish: func(s link.ServerPublishStream) error {
			p, err := s.Recv()
			if err != nil {
				return err
			}
			defer p.Release()
			if !sameMessage(p.Items[0].Message, message) {
				return errors.New("another message")
			}
			return s.Send([]frame.Receipt{{ID: 1}})
		},
	})
	sub, err := l.Subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []uint64
	for {
		var r frame.SubscribeResponse
		if err = sub.Recv(&r); err != nil {
			break
		}
		for _, d := range r.Deliveries.Items {
			if ids = append(ids, d.ID); d.ID == 2 && !sameMessage(d.Message, message) {
				t.Error("another message")
			}
		}
		r.Deliveries.Release()
	}
	if !errors.Is(err, io.EOF) || len(ids) != 3 {
		t.Errorf("got %v, %v", ids, err)
	}
	out, err := l.Publish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := frame.NewPublishes()
	p.Items = append(p.Items, frame.Outgoing{ID: 1, Message: message})
	if err := out.Send(p); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Recv(nil); err != nil {
		t.Error(err)
	}
}

func sameMessage(a, b core.Message) bool {
	return a.Name == b.Name && bytes.Equal(a.Payload, b.Payload) &&
		slices.EqualFunc(a.Headers, b.Headers, func(a, b core.Header) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) })
}

// TestBothDirectionsAtOnce sends and receives on one stream from two goroutines
// a side: no reader waits for its own writer.
func TestBothDirectionsAtOnce(t *testing.T) {
	const total = 20_000
	kinds(t, func(t *testing.T, open opener) {
		l, _ := open(t, &server{subscribe: func(s link.ServerSubscribeStream) error {
			sent := make(chan error, 1)
			go func() {
				for id := uint64(1); id <= total; {
					d := frame.DeliveriesOf(16)
					for range 16 {
						d.Items = append(d.Items, frame.Delivery{ID: id, Message: core.Message{Name: "orders",
							Headers: core.Headers{{Name: "a", Value: []byte("b")}}, Payload: []byte("payload")}})
						id++
					}
					if err := s.Send(&frame.SubscribeResponse{Deliveries: d}); err != nil {
						sent <- err
						return
					}
				}
				sent <- nil
			}()
			var r frame.SubscribeRequest
			for next := uint64(1); ; {
				err := s.Recv(&r)
				if errors.Is(err, io.EOF) {
					return <-sent
				}
				if err != nil {
					return errors.Join(err, <-sent)
				}
				for _, v := range r.Settle {
					if v.First != next || v.Kind != core.VerdictAck {
						return errors.New("verdicts out of order")
					}
					next++
				}
			}
		}})
		s, err := l.Subscribe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids := make(chan uint64, 64)
		go func() {
			defer close(ids)
			for next := uint64(1); next <= total; {
				var r frame.SubscribeResponse
				if err := s.Recv(&r); err != nil {
					t.Error(err)
					return
				}
				for i := range r.Deliveries.Items {
					d := &r.Deliveries.Items[i]
					if d.ID != next || d.Message.Name != "orders" || d.Message.Headers[0].Name != "a" || string(d.Message.Payload) != "payload" {
						t.Errorf("delivery %d is %+v", next, d)
						return
					}
					next++
					ids <- d.ID
				}
				r.Deliveries.Release()
			}
		}()
		for id := range ids {
			if err := s.Send(&frame.SubscribeRequest{Settle: []frame.VerdictRun{{First: id, Kind: core.VerdictAck}}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if err := s.Recv(&frame.SubscribeResponse{}); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want io.EOF", err)
		}
	})
}

// TestASenderWaits shows that what is not read is bounded, and that the end of
// the stream frees its sender.
func TestASenderWaits(t *testing.T) {
	kinds(t, func(t *testing.T, open opener) {
		sent, ended := make(chan struct{}), make(chan error, 1)
		l, _ := open(t, &server{subscribe: func(s link.ServerSubscribeStream) error {
			for {
				d := frame.DeliveriesOf(1)
				d.Items = append(d.Items, frame.Delivery{Message: core.Message{Payload: make([]byte, 64<<10)}})
				if err := s.Send(&frame.SubscribeResponse{Deliveries: d}); err != nil {
					ended <- err
					return err
				}
				sent <- struct{}{}
			}
		}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, err := l.Subscribe(ctx)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for quiet := false; !quiet; {
			select {
			case <-sent:
				if n++; n > 1000 {
					t.Fatal("the sender never waits")
				}
			case <-time.NewTimer(200 * time.Millisecond).C:
				quiet = true
			}
		}
		var r frame.SubscribeResponse
		if err := s.Recv(&r); err != nil {
			t.Fatal(err)
		}
		r.Deliveries.Release()
		cancel()
		within(t, "plugin", func() {
			for {
				select {
				case <-sent:
				case err := <-ended:
					if !errors.Is(err, context.Canceled) {
						t.Errorf("got %T %v, want context.Canceled", err, err)
					}
					return
				}
			}
		})
	})
}
