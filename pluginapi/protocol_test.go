// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

func TestHostThatBreaksTheProtocol(t *testing.T) {
	start := &frame.SubscribeRequest{Start: &transportpb.SubscribeStart{Registration: &transportpb.Registration{Name: "q"}}}
	many := make([]frame.VerdictRun, 4096)
	for _, tc := range []struct {
		name string
		send func(s link.SubscribeStream)
		code core.FaultCode
	}{
		{"credit first", func(s link.SubscribeStream) {
			_ = s.Send(&frame.SubscribeRequest{Credit: &frame.Credit{Messages: 1}})
		}, core.FaultConflict},
		{"nothing but half-close", func(s link.SubscribeStream) { _ = s.CloseSend() }, core.FaultConflict},
		{"start twice", func(s link.SubscribeStream) { _ = s.Send(start); _ = s.Send(start) }, core.FaultConflict},
		{"registration twice", func(s link.SubscribeStream) {
			_ = s.Send(&frame.SubscribeRequest{Start: &transportpb.SubscribeStart{Registration: &transportpb.Registration{Id: 9, Name: "q"}}})
		}, core.FaultConflict},
		{"endless verdicts", func(s link.SubscribeStream) {
			_ = s.Send(start)
			_ = s.Send(&frame.SubscribeRequest{Credit: &frame.Credit{Messages: 9, Bytes: 9}})
			many[0] = ack(1)
			for s.Send(&frame.SubscribeRequest{Settle: many}) == nil {
			}
		}, core.FaultExhausted},
		{"endless seeks", func(s link.SubscribeStream) {
			_ = s.Send(start)
			for s.Send(&frame.SubscribeRequest{Seek: &transportpb.Seek{Kind: transportpb.PositionKind_POSITION_KIND_END}}) == nil {
			}
		}, core.FaultExhausted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := newQueueTransport(everything())
			tr.spec.Seeks = true
			stuck := make(chan struct{})
			tr.settle = func(ctx context.Context, _ *queue, vs []Verdict) []Result {
				<-ctx.Done()
				return nil
			}
			var seeks atomic.Int32
			tr.wrap = func(s Subscription) Subscription { return stuckSeeker{s.(*queue), &seeks} }
			b := serve(t, tr).connect()
			tr.queue("q").fill(1, 1)
			other := b.open(&transportpb.Registration{Id: 9, Name: "other"})
			other.wait("Started", func() bool { return other.started != nil })
			defer close(stuck)
			s, err := b.link.Subscribe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			sent := make(chan struct{})
			go func() { defer close(sent); tc.send(s) }()
			defer func() { <-sent }()
			for {
				var r frame.SubscribeResponse
				if err = s.Recv(&r); err != nil {
					break
				}
				if r.Deliveries != nil {
					r.Deliveries.Release()
				}
			}
			var f *core.Fault
			if !errors.As(err, &f) || f.Code != tc.code {
				t.Errorf("stream ended with %v, want a fault of code %d", err, tc.code)
			}
			other.finish()
		})
	}
}

// stuckSeeker is a queue whose Seek waits for its context.
type stuckSeeker struct {
	*queue
	calls *atomic.Int32
}

func (s stuckSeeker) Seek(ctx context.Context, _ Position) error {
	s.calls.Add(1)
	<-ctx.Done()
	return ctx.Err()
}
