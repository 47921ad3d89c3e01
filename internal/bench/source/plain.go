// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// Plain is the source behind the link alone: pooled frames without the SDK.
type Plain struct{}

// Describe says what it is.
func (Plain) Describe(context.Context, *transportpb.DescribeRequest) (*transportpb.DescribeResponse, error) {
	return &transportpb.DescribeResponse{Name: "bench"}, nil
}

// Configure takes anything.
func (Plain) Configure(context.Context, *transportpb.ConfigureRequest) (*transportpb.ConfigureResponse, error) {
	return &transportpb.ConfigureResponse{}, nil
}

// Inspect looks at nothing.
func (Plain) Inspect(context.Context, *transportpb.InspectRequest) (*transportpb.InspectResponse, error) {
	return &transportpb.InspectResponse{}, nil
}

// Connect connects nothing.
func (Plain) Connect(context.Context, *transportpb.ConnectRequest) (*transportpb.ConnectResponse, error) {
	return &transportpb.ConnectResponse{}, nil
}

// Request answers with the usage.
func (Plain) Request(context.Context, *transportpb.RequestRequest) (*transportpb.RequestResponse, error) {
	m, err := usedMessage()
	return &transportpb.RequestResponse{Reply: convert.FromMessage(m)}, err
}

// Close closes nothing.
func (Plain) Close(context.Context, *transportpb.CloseRequest) (*transportpb.CloseResponse, error) {
	return &transportpb.CloseResponse{}, nil
}

// Publish is not measured.
func (Plain) Publish(link.ServerPublishStream) error { return errUnmeasured() }

// Supervise is not measured.
func (Plain) Supervise(link.ServerSuperviseStream) error { return errUnmeasured() }

func errUnmeasured() error {
	return &core.Fault{Code: core.FaultUnsupported, Message: "the baseline has subscriptions only"}
}

// Subscribe delivers until it is stopped.
func (Plain) Subscribe(s link.ServerSubscribeStream) error {
	var r frame.SubscribeRequest
	if err := s.Recv(&r); err != nil {
		return err
	}
	var o Options
	if err := json.Unmarshal(r.Start.GetRegistration().GetOptions(), &o); err != nil {
		return err
	}
	if err := s.Send(&frame.SubscribeResponse{Started: &transportpb.Started{Profiles: convert.FromProfiles(o.profiles())}}); err != nil {
		return err
	}
	w := newWindow()
	sent := make(chan error, 1)
	go func() { sent <- deliver(s, w, o) }()
	for {
		err := s.Recv(&r)
		if err != nil {
			w.stop()
			if sendErr := <-sent; errors.Is(err, io.EOF) {
				return sendErr
			}
			return err
		}
		switch {
		case r.Credit != nil:
			w.set(r.Credit.Messages)
		case r.Stop:
			w.stop()
		default:
			n := uint64(0)
			for i := range r.Settle {
				n += max(r.Settle[i].Count, 1)
			}
			w.settle(n)
		}
	}
}

// deliver sends frames while there is credit.
func deliver(s link.ServerSubscribeStream, w *window, o Options) error {
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
			return s.Send(&frame.SubscribeResponse{Ended: &transportpb.Ended{}})
		}
		d := frame.DeliveriesOf(n)
		for range n {
			d.Items = append(d.Items, frame.Delivery{ID: id, Message: messages[id%distinct], Attempt: 1, PublishedAt: at})
			id++
		}
		if err := s.Send(&frame.SubscribeResponse{Deliveries: d}); err != nil {
			return err
		}
	}
}

// pace waits between frames.
type pace struct{ ticker *time.Ticker }

func newPace(o Options) pace {
	if o.Every == 0 {
		return pace{}
	}
	return pace{time.NewTicker(time.Duration(o.Every))}
}

func (p pace) stop() {
	if p.ticker != nil {
		p.ticker.Stop()
	}
}

// wait returns the time of the next frame, 0 without a pace, and false when ctx
// has ended.
func (p pace) wait(ctx context.Context) (at int64, ok bool) {
	if p.ticker == nil {
		return 0, ctx.Err() == nil
	}
	select {
	case <-p.ticker.C:
		return time.Now().UnixNano(), true
	case <-ctx.Done():
		return 0, false
	}
}
