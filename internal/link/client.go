// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// NewClient returns the link over a connection to a plugin. The connection
// stays the caller's.
func NewClient(conn grpc.ClientConnInterface) Link { return &client{conn, callOptions()} }

// client is the host's side over gRPC.
type client struct {
	conn    grpc.ClientConnInterface
	options []grpc.CallOption
}

// call makes a call with one answer.
func call[Out, In any, PIn message[In]](ctx context.Context, c *client, name string, in PIn) (*Out, error) {
	if err := checkSize(in); err != nil {
		return nil, err
	}
	out := new(Out)
	if err := c.conn.Invoke(ctx, path(name), in, out, limited(c.options, answerLimit(out))...); err != nil {
		return nil, fromRPC(ctx, err)
	}
	return out, nil
}

func (c *client) Describe(ctx context.Context, r *transportpb.DescribeRequest) (*transportpb.DescribeResponse, error) {
	return call[transportpb.DescribeResponse](ctx, c, "Describe", r)
}

func (c *client) Configure(ctx context.Context, r *transportpb.ConfigureRequest) (*transportpb.ConfigureResponse, error) {
	return call[transportpb.ConfigureResponse](ctx, c, "Configure", r)
}

func (c *client) Inspect(ctx context.Context, r *transportpb.InspectRequest) (*transportpb.InspectResponse, error) {
	return call[transportpb.InspectResponse](ctx, c, "Inspect", r)
}

func (c *client) Connect(ctx context.Context, r *transportpb.ConnectRequest) (*transportpb.ConnectResponse, error) {
	return call[transportpb.ConnectResponse](ctx, c, "Connect", r)
}

func (c *client) Request(ctx context.Context, r *transportpb.RequestRequest) (*transportpb.RequestResponse, error) {
	return call[transportpb.RequestResponse](ctx, c, "Request", r)
}

func (c *client) Close(ctx context.Context, r *transportpb.CloseRequest) (*transportpb.CloseResponse, error) {
	return call[transportpb.CloseResponse](ctx, c, "Close", r)
}

// limited returns options with a limit of what is received.
func limited(options []grpc.CallOption, limit int) []grpc.CallOption {
	return append(slices.Clone(options), grpc.MaxCallRecvMsgSize(limit))
}

// open opens a stream in both directions.
func (c *client) open(ctx context.Context, name string, limit int) (grpc.ClientStream, error) {
	desc := &grpc.StreamDesc{StreamName: name, ClientStreams: true, ServerStreams: true}
	s, err := c.conn.NewStream(ctx, desc, path(name), limited(c.options, limit)...)
	if err != nil {
		return nil, fromRPC(ctx, err)
	}
	return s, nil
}

func (c *client) Subscribe(ctx context.Context) (SubscribeStream, error) {
	s, err := c.open(ctx, "Subscribe", frame.MaxWireSize)
	if err != nil {
		return nil, err
	}
	return &clientSubscribe{ctx: ctx, stream: s}, nil
}

func (c *client) Publish(ctx context.Context) (PublishStream, error) {
	s, err := c.open(ctx, "Publish", frame.MaxWireSize)
	if err != nil {
		return nil, err
	}
	return &clientPublish{ctx: ctx, stream: s}, nil
}

func (c *client) Supervise(ctx context.Context) (SuperviseStream, error) {
	s, err := c.open(ctx, "Supervise", frame.MaxControl)
	if err != nil {
		return nil, err
	}
	return &clientSupervise{ctx: ctx, stream: s}, nil
}

// clientSubscribe is the host's side of a subscription over gRPC.
type clientSubscribe struct {
	ctx    context.Context // the caller's: the stream's own ends with the stream, whatever ended it
	stream grpc.ClientStream
	out    frame.SubscribeRequestEncoder
	in     responseReader
}

func (s *clientSubscribe) Send(r *frame.SubscribeRequest) error {
	if f := s.out.Reset(r); f != nil {
		return f
	}
	for s.out.Next() {
		if err := s.stream.SendMsg(&s.out); err != nil {
			return fromRPC(s.ctx, err)
		}
	}
	return nil
}

func (s *clientSubscribe) CloseSend() error { return fromRPC(s.ctx, s.stream.CloseSend()) }

func (s *clientSubscribe) Recv(r *frame.SubscribeResponse) error {
	s.in.to = r
	return fromRPC(s.ctx, s.stream.RecvMsg(&s.in))
}

// responseReader reads a SubscribeResponse into to.
type responseReader struct{ to *frame.SubscribeResponse }

func (r *responseReader) read(slab *[]byte) error { return frame.DecodeSubscribeResponse(slab, r.to) }

// clientPublish is the host's side of the publish stream over gRPC.
type clientPublish struct {
	ctx    context.Context // as in clientSubscribe
	stream grpc.ClientStream
	out    frame.PublishEncoder
	in     receiptReader
}

func (s *clientPublish) Send(p *frame.Publishes) error {
	defer p.Release()
	if f := s.out.Reset(p.Items); f != nil {
		return f
	}
	for s.out.Next() {
		if err := s.stream.SendMsg(&s.out); err != nil {
			return fromRPC(s.ctx, err)
		}
	}
	return nil
}

func (s *clientPublish) CloseSend() error { return fromRPC(s.ctx, s.stream.CloseSend()) }

func (s *clientPublish) Recv(rs []frame.Receipt) ([]frame.Receipt, error) {
	s.in.to = rs
	err := s.stream.RecvMsg(&s.in)
	rs, s.in.to = s.in.to, nil
	return rs, fromRPC(s.ctx, err)
}

// receiptReader appends receipts to to.
type receiptReader struct{ to []frame.Receipt }

func (r *receiptReader) read(slab *[]byte) error {
	defer frame.Pool{}.Put(slab)
	rs, err := frame.DecodeReceipts(*slab, r.to)
	r.to = rs
	return err
}

// clientSupervise is the host's side of supervision over gRPC.
type clientSupervise struct {
	ctx    context.Context // as in clientSubscribe
	stream grpc.ClientStream
}

func (s *clientSupervise) Send(r *transportpb.SuperviseRequest) error {
	if err := checkSize(r); err != nil {
		return err
	}
	return fromRPC(s.ctx, s.stream.SendMsg(r))
}

func (s *clientSupervise) CloseSend() error { return fromRPC(s.ctx, s.stream.CloseSend()) }

func (s *clientSupervise) Recv() (*transportpb.SuperviseResponse, error) {
	r := &transportpb.SuperviseResponse{}
	if err := s.stream.RecvMsg(r); err != nil {
		return nil, fromRPC(s.ctx, err)
	}
	return r, nil
}
