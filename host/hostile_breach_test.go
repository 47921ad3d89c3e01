// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// A plugin that breaks the protocol on a subscription's stream ends its
// endpoint, and the error says with what.
func TestBreachesOfASubscription(t *testing.T) {
	settled := func(first, count uint64) *pb.Settled {
		return &pb.Settled{Results: []*pb.SettleResult{{First: first, Count: count, Status: pb.SettleStatus_SETTLE_STATUS_FAILED}}}
	}
	many := make([]uint64, 257)
	for i := range many {
		many[i] = uint64(i + 1)
	}
	tests := []struct {
		name   string
		breach func(s *hostileStream, credit uint64)
		want   string
	}{
		{"over its credit", func(s *hostileStream, credit uint64) {
			for id := uint64(1); id <= credit+1 && s.deliver(id); id++ {
			}
		}, "without credit"},
		{"ids from 0", func(s *hostileStream, _ uint64) { s.deliver(0) }, "sent delivery 0 after delivery 0"},
		{"ids out of order", func(s *hostileStream, _ uint64) { s.deliver(1, 3, 2) }, "sent delivery 3 after delivery 1"},
		{"an id twice", func(s *hostileStream, _ uint64) { s.deliver(1, 1) }, "sent delivery 1 after delivery 1"},
		{"an unknown profile", func(s *hostileStream, _ uint64) {
			s.send(&pb.Deliveries{Items: []*pb.Delivery{{Id: 1, Profile: math.MaxUint32}}})
		}, "profile 4294967295 of 2"},
		{"an attempt of 0 of a source that counts", func(s *hostileStream, _ uint64) {
			s.send(&pb.Deliveries{Items: []*pb.Delivery{{Id: 1, Profile: 1, Attempt: 1}, {Id: 2, Profile: 1}}})
		}, "sent delivery 2 with attempt 0"},
		{"a result for nothing", func(s *hostileStream, _ uint64) { s.send(settled(7, 1)) }, "answered verdicts for deliveries 7 to 7 of 0"},
		{"absurdly many results", func(s *hostileStream, _ uint64) {
			s.deliver(1)
			s.send(settled(1, math.MaxUint64))
		}, "answered verdicts"},
		{"deliveries after the end", func(s *hostileStream, _ uint64) {
			s.deliver(1)
			s.send(&pb.Ended{})
			s.deliver(2)
		}, "after the end"},
		{"Started again", func(s *hostileStream, _ uint64) {
			s.send(&pb.Started{})
			s.deliver(2)
		}, "sent delivery 2 after delivery 0"},
		{"257 messages in a frame", func(s *hostileStream, _ uint64) { s.deliver(many...) }, "more entries than a frame may have"},
		{"no protobuf", func(s *hostileStream, _ uint64) { s.send([]byte{0xff, 0xff, 0xff}) }, "truncated"},
		{"no protobuf inside", func(s *hostileStream, _ uint64) { s.send([]byte{0x12, 0x04, 0x0a, 0x02, 0x08, 0xff}) }, "truncated"},
		{"a frame beyond the limit", func(s *hostileStream, _ uint64) { s.send(make([]byte, 66<<20)) }, "larger than max"},
		{"a report beyond the limit", func(s *hostileStream, _ uint64) {
			s.send(&pb.Report{Fault: &pb.Fault{Message: strings.Repeat("x", 3<<20)}})
		}, "limit of 2097152"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// Nothing is settled before the host has seen the breach.
			held := make(chan struct{})
			release := sync.OnceFunc(func() { close(held) })
			h := &hostile{subscribe: func(s *hostileStream) {
				s.send(&pb.Started{Profiles: hostileProfile()})
				tt.breach(s, s.credit())
				<-s.Context().Done()
				release()
			}}
			s, e := h.attach(t)
			host.Handle(e.Subscription("q"), func(ctx context.Context, _ *host.Message[[]byte]) error {
				select {
				case <-held:
				case <-ctx.Done():
				}
				return host.Leave()
			})
			s.run(t)
			err := s.result(t)
			var lost *host.EndpointError
			if !errors.As(err, &lost) || lost.Endpoint != "evil" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an *EndpointError of evil with %q", err, tt.want)
			}
		})
	}
}

// A plugin that breaks the protocol at the start keeps the host from starting,
// and takes neither its memory nor its time.
func TestBreachesOfAStart(t *testing.T) {
	describes := func(settings, subscription string) *hostile {
		return &hostile{describe: func() any {
			return &pb.DescribeResponse{Name: "hostile", SettingsSchema: []byte(settings), SubscriptionSchema: []byte(subscription)}
		}}
	}
	inspects := func(change func(*pb.InspectResponse)) *hostile {
		return &hostile{inspect: func(r *pb.InspectRequest) any {
			out := inspected(r)
			change(out)
			return out
		}}
	}
	starts := func(first any) *hostile {
		return &hostile{subscribe: func(s *hostileStream) {
			if first != nil {
				s.send(first)
			}
			<-s.Context().Done()
		}}
	}
	silent := starts(nil)
	silent.connectLimit = 200 * time.Millisecond
	publishes := func(f func(grpc.ServerStream) error) *hostile { return &hostile{publish: f} }
	empty := bytes.Repeat([]byte{0x42, 0}, 30<<20) // capability sets of Describe
	tests := []struct {
		name string
		h    *hostile
		want string
	}{
		{"says nothing", silent, "no answer in time"},
		{"deliveries before Started", starts(&pb.Deliveries{Items: []*pb.Delivery{{Id: 1}}}), "not Started"},
		{"Ended before Started", starts(&pb.Ended{}), "not Started"},
		{"wider than it said", starts(&pb.Started{Profiles: []*pb.Capabilities{
			{Ack: pb.AckMode_ACK_MODE_SINGLE, Requeue: pb.RequeueMode_REQUEUE_MODE_DELAYED, Address: "q"},
		}}), "wider"},
		{"no protobuf in Describe", &hostile{describe: func() any { return []byte{0xff} }}, "cannot parse"},
		{"another transport", &hostile{describe: func() any { return &pb.DescribeResponse{Name: "x"} }}, `transport "x"`},
		{"an endless Describe", &hostile{describe: func() any { return empty }}, "larger than max"},
		{"an endless Started", &hostile{subscribe: func(s *hostileStream) {
			s.send(append([]byte{0x0a, 0x80, 0x80, 0x80, 0x08}, empty[:16<<20]...))
			<-s.Context().Done()
		}}, "limit of 2097152"},
		{"schemas that are none", describes("{", `{"$ref":"file:///etc/passwd"}`), "defect of the transport"},
		{"no registrations", inspects(func(r *pb.InspectResponse) { r.Registrations = nil }), "0 registrations of 1"},
		{"no profiles", inspects(func(r *pb.InspectResponse) { r.Registrations[0].Profiles = nil }), "does not say what its deliveries can do"},
		{"unknown registrations", inspects(func(r *pb.InspectResponse) { r.Destinations[0].ReturnsTo = []uint32{math.MaxUint32} }), "names registration"},
		{"no publish stream", publishes(func(grpc.ServerStream) error { return status.Error(codes.Unimplemented, "no such call") }), "no such call"},
		{"a receipt for nothing", publishes(func(s grpc.ServerStream) error {
			_ = s.SendMsg(&pb.PublishResponse{Receipts: []*pb.Receipt{{Id: 1}}})
			<-s.Context().Done()
			return nil
		}), "receipt for publish 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.h.publish != nil { // nothing else is said before the breach
				tt.h.subscribe = func(s *hostileStream) { <-s.Context().Done() }
			}
			s, e := tt.h.attach(t)
			host.Handle(e.Subscription("q"), acks)
			host.To[[]byte](s.Host, e.To("out"))
			err := startError(t, s)
			if !strings.Contains(err.Error(), "evil") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q of endpoint evil", err, tt.want)
			}
		})
	}
}

// Voids name what they please; what is there is void and nothing else.
func TestAbsurdVoids(t *testing.T) {
	for _, tt := range []struct {
		void *pb.Void
		ran  int // of four deliveries
	}{
		{&pb.Void{First: 1, Count: 1 << 63, Returns: true}, 2},
		{&pb.Void{First: 2, Count: math.MaxUint64 - 1, Returns: true}, 2},
		{&pb.Void{Count: math.MaxUint64, Returns: true}, 2},
		{&pb.Void{All: true, Returns: true}, 2},
		{&pb.Void{First: math.MaxUint64, Count: math.MaxUint64, Returns: true}, 4},
		{&pb.Void{Scope: "no such scope", Returns: true}, 4},
	} {
		t.Run(fmt.Sprint(tt.void), func(t *testing.T) {
			begun, voided := make(chan struct{}), make(chan struct{})
			h := &hostile{subscribe: func(s *hostileStream) {
				s.send(&pb.Started{Profiles: hostileProfile()})
				s.credit()
				s.deliver(1, 2, 3)
				<-begun
				for range 1000 {
					s.send(tt.void)
				}
				s.send(&pb.Report{Fault: &pb.Fault{Message: "all voids are sent"}})
				s.deliver(4)
				s.serve()
			}}
			s, e := h.attach(t)
			runs := make(chan struct{}, 4)
			host.Handle(e.Subscription("q"), func(context.Context, *host.Message[[]byte]) error {
				runs <- struct{}{}
				if len(runs) == 1 {
					close(begun)
					<-voided
				}
				return nil
			})
			s.serve(t)
			eventually(t, "the voids are read", func() bool { return len(s.log.lines("all voids are sent")) > 0 })
			close(voided)
			eventually(t, "the rest is handled", func() bool { return len(runs) >= tt.ran })
			s.stop()
			if err := s.result(t); err != nil || len(runs) != tt.ran {
				t.Errorf("%d runs, want %d; %v", len(runs), tt.ran, err)
			}
		})
	}
}

// Every publish comes back, whatever the receipts are.
func TestReceiptsThatBreakTheProtocol(t *testing.T) {
	answer := func(rs func(id uint64) []*pb.Receipt) func(grpc.ServerStream) error {
		return func(s grpc.ServerStream) error {
			r := &pb.PublishRequest{}
			if s.RecvMsg(r) == nil {
				_ = s.SendMsg(&pb.PublishResponse{Receipts: rs(r.GetItems()[0].GetId())})
			}
			return untilItsEnd(s)
		}
	}
	reached := make(chan struct{}, 1)
	for _, tt := range []struct {
		name    string
		publish func(grpc.ServerStream) error
		ok      bool
		maybe   bool
		lost    string // what Run's error says, "" = the endpoint stays
	}{
		{"for nothing", answer(func(id uint64) []*pb.Receipt { return []*pb.Receipt{{Id: id + 5, Status: 1}} }), false, true, "receipt for publish 6"},
		{"twice", answer(func(id uint64) []*pb.Receipt { return []*pb.Receipt{{Id: id, Status: 1}, {Id: id, Status: 1}} }), true, false, "receipt for publish 1"},
		{"an unknown status", answer(func(id uint64) []*pb.Receipt { return []*pb.Receipt{{Id: id, Status: 99}} }), false, true, ""},
		{"no status", answer(func(id uint64) []*pb.Receipt { return []*pb.Receipt{{Id: id}} }), false, true, ""},
		{"refused without a word", answer(func(id uint64) []*pb.Receipt { return []*pb.Receipt{{Id: id, Status: 2}} }), false, false, ""},
		{"never", func(s grpc.ServerStream) error {
			_ = s.RecvMsg(&pb.PublishRequest{})
			reached <- struct{}{}
			return untilItsEnd(s)
		}, false, true, ""},
		{"nobody reads", func(s grpc.ServerStream) error { <-s.Context().Done(); return nil }, false, true, ""},
		{"no protobuf", func(s grpc.ServerStream) error {
			_ = s.RecvMsg(&pb.PublishRequest{})
			_ = s.SendMsg([]byte{0xff, 0xff, 0xff})
			return untilItsEnd(s)
		}, false, true, "truncated"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &hostile{publish: tt.publish}
			if silent := tt.name == "never" || tt.name == "nobody reads"; silent {
				h.drainLimit = 100 * time.Millisecond // the stop waits for a receipt
			}
			s, e := h.attach(t)
			host.Handle(e.Subscription("q"), acks)
			out := host.To[[]byte](s.Host, e.To("out"))
			s.serve(t)
			limit := patience
			if tt.name == "nobody reads" { // nor says when it is on its way
				limit = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			if tt.name == "never" {
				go func() {
					receive(t, reached)
					cancel()
				}()
			}
			_, err := out.Publish(ctx, []byte("x"))
			var failed *host.PublishError
			switch {
			case (err == nil) != tt.ok:
				t.Errorf("got %v", err)
			case err != nil && (!errors.As(err, &failed) || failed.To != (core.Destination{Endpoint: "evil", Name: "out"}) || failed.MaybeSent != tt.maybe):
				t.Errorf("got %#v", err)
			}
			if tt.lost == "" {
				s.stop()
			}
			err = s.result(t)
			var lost *host.EndpointError
			switch {
			case tt.lost == "" && err != nil:
				t.Errorf("the host ended with %v", err)
			case tt.lost != "" && (!errors.As(err, &lost) || !strings.Contains(err.Error(), tt.lost)):
				t.Errorf("the host ended with %v, want %q", err, tt.lost)
			}
		})
	}
}
