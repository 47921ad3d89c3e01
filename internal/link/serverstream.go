// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"

	"google.golang.org/grpc"

	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// serverSubscribe is the plugin's side of a subscription over gRPC.
type serverSubscribe struct {
	stream grpc.ServerStream
	out    frame.SubscribeResponseEncoder
	in     requestReader
}

func (s *serverSubscribe) Context() context.Context { return s.stream.Context() }

func (s *serverSubscribe) Send(r *frame.SubscribeResponse) error {
	if r.Deliveries != nil {
		defer r.Deliveries.Release()
	}
	if f := s.out.Reset(r); f != nil {
		return f
	}
	for s.out.Next() {
		if err := s.stream.SendMsg(&s.out); err != nil {
			return fromHost(s.stream.Context(), err)
		}
	}
	return nil
}

func (s *serverSubscribe) Recv(r *frame.SubscribeRequest) error {
	s.in.to = r
	return fromHost(s.stream.Context(), s.stream.RecvMsg(&s.in))
}

// requestReader reads a SubscribeRequest into to.
type requestReader struct {
	decoder frame.SubscribeRequestDecoder
	to      *frame.SubscribeRequest
}

func (r *requestReader) read(slab *[]byte) error {
	defer frame.Pool{}.Put(slab)
	return r.decoder.Decode(*slab, r.to)
}

// serverPublish is the plugin's side of the publish stream over gRPC.
type serverPublish struct {
	stream grpc.ServerStream
	out    frame.ReceiptEncoder
	in     publishReader
}

func (s *serverPublish) Context() context.Context { return s.stream.Context() }

func (s *serverPublish) Send(rs []frame.Receipt) error {
	if f := s.out.Reset(rs); f != nil {
		return f
	}
	for s.out.Next() {
		if err := s.stream.SendMsg(&s.out); err != nil {
			return fromHost(s.stream.Context(), err)
		}
	}
	return nil
}

func (s *serverPublish) Recv() (*frame.Publishes, error) {
	err := s.stream.RecvMsg(&s.in)
	p := s.in.got
	s.in.got = nil
	return p, fromHost(s.stream.Context(), err)
}

// publishReader reads a frame of messages to publish.
type publishReader struct{ got *frame.Publishes }

func (r *publishReader) read(slab *[]byte) (err error) {
	r.got, err = frame.DecodePublishes(slab)
	return err
}

// serverSupervise is the plugin's side of supervision over gRPC.
type serverSupervise struct{ stream grpc.ServerStream }

func (s *serverSupervise) Context() context.Context { return s.stream.Context() }

func (s *serverSupervise) Send(r *transportpb.SuperviseResponse) error {
	if err := checkAnswer(r); err != nil {
		return err
	}
	return fromHost(s.stream.Context(), s.stream.SendMsg(r))
}

func (s *serverSupervise) Recv() (*transportpb.SuperviseRequest, error) {
	r := &transportpb.SuperviseRequest{}
	if err := s.stream.RecvMsg(r); err != nil {
		return nil, fromHost(s.stream.Context(), err)
	}
	return r, nil
}
