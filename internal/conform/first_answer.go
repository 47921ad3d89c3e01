// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"errors"
	"io"

	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// errEnded says that a stream ended in order where it was expected to be served
// or refused.
var errEnded = errors.New("the stream ended without a word")

// firstAnswer opens a stream, says something that is answered, and returns the
// error in place of the answer. A stream that is served is ended in order.
func firstAnswer(ctx context.Context, l link.Link, r *transportpb.Registration, o frame.Outgoing, name string) error {
	var err error
	said := func() bool { return err == nil || errors.Is(err, io.EOF) } // EOF: the answer says why
	switch name {
	case "Subscribe":
		var s link.SubscribeStream
		if s, err = l.Subscribe(ctx); err == nil {
			if err = s.Send(&frame.SubscribeRequest{Start: &transportpb.SubscribeStart{Registration: r}}); said() {
				if err = s.Recv(&frame.SubscribeResponse{}); err == nil {
					return last(s.CloseSend, func() error { return s.Recv(&frame.SubscribeResponse{}) },
						func() error { return s.Send(&frame.SubscribeRequest{Stop: true}) })
				}
			}
		}
	case "Publish":
		var s link.PublishStream
		if s, err = l.Publish(ctx); err == nil {
			f := frame.NewPublishes()
			f.Items = append(f.Items, o)
			if err = s.Send(f); said() {
				if _, err = s.Recv(nil); err == nil {
					return last(s.CloseSend, func() error { _, err := s.Recv(nil); return err })
				}
			}
		}
	case "Supervise":
		var s link.SuperviseStream
		if s, err = l.Supervise(ctx); err == nil {
			if err = s.Send(&transportpb.SuperviseRequest{Part: &transportpb.SuperviseRequest_Beat{Beat: 1}}); said() {
				if _, err = s.Recv(); err == nil {
					return last(s.CloseSend, func() error { _, err := s.Recv(); return err })
				}
			}
		}
	}
	if errors.Is(err, io.EOF) {
		return errEnded
	}
	return err
}

// last ends a stream in order.
func last(halfClose, recv func() error, before ...func() error) error {
	for _, f := range append(before, halfClose) {
		if err := f(); err != nil {
			return err
		}
	}
	for {
		if err := recv(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
