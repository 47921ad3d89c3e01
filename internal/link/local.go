// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// LocalLink is a link to a server in this process. Nothing is serialised: what
// one side sends the other receives, frames with their holders included, so
// neither side may change what it has sent. Errors, limits, contexts and the
// ends of streams are those of gRPC.
type LocalLink struct {
	server Server
	end    context.CancelCauseFunc // with a *LostError
	ended  context.Context
	mu     sync.Mutex // calls start under it, so that none starts after Break
	calls  sync.WaitGroup
}

// Local returns a link to s.
func Local(s Server) *LocalLink {
	l := &LocalLink{server: s}
	l.ended, l.end = context.WithCancelCause(context.Background())
	return l
}

// Break ends the link as the death of a plugin's process would: calls and
// streams end with a *LostError for the host and with a cancelled context for
// the server.
func (l *LocalLink) Break(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(&LostError{Cause: cause})
}

// Wait returns once the server has returned from all calls and streams, or
// when ctx ends. After a Break no further ones start.
func (l *LocalLink) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		l.calls.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin starts a call of the server whose context ends with ctx and the link.
// The server's side calls done when it has returned.
func (l *LocalLink) begin(ctx context.Context) (server context.Context, done func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(ctx); err != nil {
		return nil, nil, err
	}
	server, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.ended, cancel)
	l.calls.Add(1)
	return server, func() {
		stop()
		cancel()
		l.calls.Done()
	}, nil
}

// over is the error of a call whose context or link has ended, nil before.
func (l *LocalLink) over(ctx context.Context) error {
	if l.ended.Err() != nil {
		return context.Cause(l.ended)
	}
	return ctx.Err()
}

// answer is what a call of the server returned.
type answer[Out any] struct {
	out *Out
	err error
}

// localCall calls the server and waits for its answer or the end of ctx, as a
// call over gRPC does.
func localCall[In, Out any, PIn message[In], POut message[Out]](
	ctx context.Context, l *LocalLink, in PIn, call func(ctx context.Context, r *In) (*Out, error),
) (*Out, error) {
	if err := checkSize(in); err != nil {
		return nil, err
	}
	server, done, err := l.begin(ctx)
	if err != nil {
		return nil, err
	}
	answers := make(chan answer[Out], 1)
	go func() {
		defer done()
		out, err := call(server, in)
		if err == nil {
			err = checkAnswer(POut(out))
		}
		answers <- answer[Out]{out, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return nil, l.fromServer(ctx, a.err)
		}
		return a.out, nil
	case <-ctx.Done():
	case <-l.ended.Done():
	}
	return nil, l.over(ctx)
}

// fromServer is what the host sees of an error that the server returned.
func (l *LocalLink) fromServer(ctx context.Context, err error) error {
	if over := l.over(ctx); over != nil {
		return over
	}
	return AsFault(err)
}

// Describe calls the server's.
func (l *LocalLink) Describe(ctx context.Context, r *transportpb.DescribeRequest) (*transportpb.DescribeResponse, error) {
	return localCall(ctx, l, r, l.server.Describe)
}

// Configure calls the server's.
func (l *LocalLink) Configure(ctx context.Context, r *transportpb.ConfigureRequest) (*transportpb.ConfigureResponse, error) {
	return localCall(ctx, l, r, l.server.Configure)
}

// Inspect calls the server's.
func (l *LocalLink) Inspect(ctx context.Context, r *transportpb.InspectRequest) (*transportpb.InspectResponse, error) {
	return localCall(ctx, l, r, l.server.Inspect)
}

// Connect calls the server's.
func (l *LocalLink) Connect(ctx context.Context, r *transportpb.ConnectRequest) (*transportpb.ConnectResponse, error) {
	return localCall(ctx, l, r, l.server.Connect)
}

// Request calls the server's.
func (l *LocalLink) Request(ctx context.Context, r *transportpb.RequestRequest) (*transportpb.RequestResponse, error) {
	return localCall(ctx, l, r, l.server.Request)
}

// Close calls the server's.
func (l *LocalLink) Close(ctx context.Context, r *transportpb.CloseRequest) (*transportpb.CloseResponse, error) {
	return localCall(ctx, l, r, l.server.Close)
}

// Subscribe opens a subscription's stream.
func (l *LocalLink) Subscribe(ctx context.Context) (SubscribeStream, error) {
	s, err := openLocal(ctx, l, func(s *localStream[*localRequest, frame.SubscribeResponse]) error {
		return l.server.Subscribe(&localServerSubscribe{localStream: s})
	})
	if err != nil {
		return nil, err
	}
	return &localSubscribe{s}, nil
}

// Publish opens the publish stream.
func (l *LocalLink) Publish(ctx context.Context) (PublishStream, error) {
	s, err := openLocal(ctx, l, func(s *localStream[*frame.Publishes, []frame.Receipt]) error {
		return l.server.Publish(&localServerPublish{s})
	})
	if err != nil {
		return nil, err
	}
	return &localPublish{s}, nil
}

// Supervise opens the stream of supervision.
func (l *LocalLink) Supervise(ctx context.Context) (SuperviseStream, error) {
	s, err := openLocal(ctx, l, func(s *localStream[*transportpb.SuperviseRequest, *transportpb.SuperviseResponse]) error {
		return l.server.Supervise(&localServerSupervise{s})
	})
	if err != nil {
		return nil, err
	}
	return &localSupervise{s}, nil
}

// clone copies a generated message, whose sender may use it again.
func clone[T proto.Message](m T) T { return proto.CloneOf(m) }
