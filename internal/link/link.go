// SPDX-License-Identifier: Apache-2.0

// Package link is the seam between a host and one generation of a plugin: the
// same calls over gRPC (Dial's connection and Register) and within one process
// (Local).
package link

import (
	"context"

	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// Link is what the host calls. Errors are *core.Fault where the plugin
// answered, *LostError where the generation is lost, and the context's error
// where that ended first.
type Link interface {
	Describe(ctx context.Context, r *transportpb.DescribeRequest) (*transportpb.DescribeResponse, error)
	Configure(ctx context.Context, r *transportpb.ConfigureRequest) (*transportpb.ConfigureResponse, error)
	Inspect(ctx context.Context, r *transportpb.InspectRequest) (*transportpb.InspectResponse, error)
	Connect(ctx context.Context, r *transportpb.ConnectRequest) (*transportpb.ConnectResponse, error)
	// Subscribe opens a subscription's stream; ctx ends it.
	Subscribe(ctx context.Context) (SubscribeStream, error)
	// Publish opens the endpoint's publish stream; ctx ends it.
	Publish(ctx context.Context) (PublishStream, error)
	Request(ctx context.Context, r *transportpb.RequestRequest) (*transportpb.RequestResponse, error)
	Close(ctx context.Context, r *transportpb.CloseRequest) (*transportpb.CloseResponse, error)
	Supervise(ctx context.Context) (SuperviseStream, error)
}

// SubscribeStream is the host's side of a subscription. One goroutine may send
// while another receives.
type SubscribeStream interface {
	// Send encodes the request before it returns; nothing of it is kept.
	Send(r *frame.SubscribeRequest) error
	CloseSend() error
	// Recv fills r. The frame of deliveries in it is the caller's to release.
	// io.EOF is the orderly end.
	Recv(r *frame.SubscribeResponse) error
}

// PublishStream is the host's side of the publish stream.
type PublishStream interface {
	// Send takes over one holder of p.
	Send(p *frame.Publishes) error
	CloseSend() error
	// Recv appends the receipts of one frame to rs.
	Recv(rs []frame.Receipt) ([]frame.Receipt, error)
}

// SuperviseStream is the host's side of supervision.
type SuperviseStream interface {
	Send(r *transportpb.SuperviseRequest) error
	CloseSend() error
	Recv() (*transportpb.SuperviseResponse, error)
}

// Server is what a plugin serves; the SDK implements it.
type Server interface {
	Describe(ctx context.Context, r *transportpb.DescribeRequest) (*transportpb.DescribeResponse, error)
	Configure(ctx context.Context, r *transportpb.ConfigureRequest) (*transportpb.ConfigureResponse, error)
	Inspect(ctx context.Context, r *transportpb.InspectRequest) (*transportpb.InspectResponse, error)
	Connect(ctx context.Context, r *transportpb.ConnectRequest) (*transportpb.ConnectResponse, error)
	Subscribe(s ServerSubscribeStream) error
	Publish(s ServerPublishStream) error
	Request(ctx context.Context, r *transportpb.RequestRequest) (*transportpb.RequestResponse, error)
	Close(ctx context.Context, r *transportpb.CloseRequest) (*transportpb.CloseResponse, error)
	Supervise(s ServerSuperviseStream) error
}

// ServerSubscribeStream is the plugin's side of a subscription. One goroutine
// may send while another receives.
type ServerSubscribeStream interface {
	Context() context.Context
	// Send encodes what r holds before it returns and drops one holder of its
	// deliveries.
	Send(r *frame.SubscribeResponse) error
	// Recv fills r; io.EOF is the host's half-close. What r holds is valid
	// until the next Recv.
	Recv(r *frame.SubscribeRequest) error
}

// Copies reports whether Send leaves nothing of deliveries with anybody: in
// process they are the host's own then.
func Copies(s ServerSubscribeStream) bool {
	_, ok := s.(*serverSubscribe)
	return ok
}

// ServerPublishStream is the plugin's side of the publish stream.
type ServerPublishStream interface {
	Context() context.Context
	Send(rs []frame.Receipt) error
	// Recv returns a frame that is the caller's to release.
	Recv() (*frame.Publishes, error)
}

// ServerSuperviseStream is the plugin's side of supervision.
type ServerSuperviseStream interface {
	Context() context.Context
	Send(r *transportpb.SuperviseResponse) error
	Recv() (*transportpb.SuperviseRequest, error)
}

// LostError says that a plugin's generation is lost: its process or its
// connection ended.
type LostError struct{ Cause error }

// Error names the cause.
func (e *LostError) Error() string {
	if e.Cause == nil {
		return "plugin lost"
	}
	return "plugin lost: " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Cause }
