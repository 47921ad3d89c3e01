// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"io"
	"sync"

	"github.com/longshore-go/longshore/core"
)

// queued is how many messages wait in one direction of a local stream before
// its sender waits.
const queued = 16

// localStream is a stream within this process: Up is what the host sends, Down
// what the server sends. Frames that are still queued when it ends are left to
// the garbage collector.
type localStream[Up, Down any] struct {
	link *LocalLink
	host context.Context // the host's, which ends the stream
	ctx  context.Context // the server's
	up   chan Up
	down chan Down

	closeOnce sync.Once
	closed    chan struct{} // the host has half-closed
	returned  chan struct{} // the server has returned
	err       error         // what it returned; set before returned is closed
}

// openLocal opens a stream and lets serve run it on a goroutine, which ends
// when the server returns. Its context tells the server to.
func openLocal[Up, Down any](
	ctx context.Context, l *LocalLink, serve func(*localStream[Up, Down]) error,
) (*localStream[Up, Down], error) {
	server, done, err := l.begin(ctx)
	if err != nil {
		return nil, err
	}
	s := &localStream[Up, Down]{
		link: l, host: ctx, ctx: server,
		up: make(chan Up, queued), down: make(chan Down, queued),
		closed: make(chan struct{}), returned: make(chan struct{}),
	}
	go func() {
		defer done()
		s.err = serve(s)
		close(s.returned)
	}()
	return s, nil
}

// Context is the server's context of the stream.
func (s *localStream[Up, Down]) Context() context.Context { return s.ctx }

// CloseSend half-closes the stream: the server receives what is queued and
// then io.EOF.
func (s *localStream[Up, Down]) CloseSend() error {
	s.closeOnce.Do(func() { close(s.closed) })
	return nil
}

// hostSend sends to the server.
func (s *localStream[Up, Down]) hostSend(v Up) error {
	select {
	case <-s.closed:
		return &core.Fault{Code: core.FaultInternal, Message: "send after half-close"}
	case <-s.returned:
		return io.EOF
	default:
	}
	if err := s.link.over(s.host); err != nil {
		return err
	}
	select {
	case s.up <- v:
		return nil
	case <-s.returned:
		return io.EOF
	case <-s.host.Done():
	case <-s.link.ended.Done():
	}
	return s.link.over(s.host)
}

// hostRecv receives from the server.
func (s *localStream[Up, Down]) hostRecv() (v Down, err error) {
	if err := s.link.over(s.host); err != nil {
		return v, err
	}
	select {
	case v = <-s.down:
		return v, nil
	case <-s.returned:
	case <-s.host.Done():
		return v, s.link.over(s.host)
	case <-s.link.ended.Done():
		return v, s.link.over(s.host)
	}
	select {
	case v = <-s.down: // sent before the server returned
		return v, nil
	default:
	}
	if s.err == nil {
		return v, io.EOF
	}
	return v, s.link.fromServer(s.host, s.err)
}

// serverSend sends to the host.
func (s *localStream[Up, Down]) serverSend(v Down) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	select {
	case s.down <- v:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// serverRecv receives from the host.
func (s *localStream[Up, Down]) serverRecv() (v Up, err error) {
	if err := s.ctx.Err(); err != nil {
		return v, err
	}
	select {
	case v = <-s.up:
		return v, nil
	case <-s.closed:
	case <-s.ctx.Done():
		return v, s.ctx.Err()
	}
	select {
	case v = <-s.up: // sent before the half-close
		return v, nil
	default:
		return v, io.EOF
	}
}
