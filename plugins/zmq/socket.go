// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/plugins/zmq/internal/intake"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/sending"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// socket is one of the six kinds of sockets with its peers. What its kind has no
// use for is nil.
type socket struct {
	endpoint *endpoint
	kind     zmq4.SocketType
	reader   string // the name of the subscription, "" where it sends

	intake *intake.Intake  // of PULL, SUB and ROUTER
	router *sending.Router // of ROUTER
	push   *sending.Push   // of PUSH
	pub    *sending.Pub    // of PUB
	dealer *dealer         // of DEALER

	peers   *peering.Peering
	address atomic.Pointer[string] // where it listens, with the port; nil: not known yet

	stopped atomic.Bool // it does not read any more
	once    sync.Once   // of close
	failed  error       // of close
}

// parting is how long a reader that closes waits at least for its peers to end:
// senders that see its end close at once, and what they had sent by then is still
// to come and to be counted.
const parting = 200 * time.Millisecond

// openSocket opens what the endpoint needs: to read for the subscription reader,
// or to send where that is "". It waits for no peer, but for the first
// subscription where it is a fan-out that dials (ADR 0105).
func openSocket(ctx context.Context, e *endpoint, reader string, resume []byte, link func(bool, string)) (*socket, error) {
	s := &socket{endpoint: e, reader: reader}
	memory := &outq.Memory{}
	s.build(memory)
	c := peering.Config{
		Bind: e.bind, Connect: e.connect, Resume: resume,
		Handshake:        zmtp.Options{Type: s.kind, MaxMessage: s.readLimit()},
		HandshakeTimeout: time.Duration(e.settings.HandshakeTimeout),
		MaxPeers:         e.settings.MaxPeers,
		Limits:           outq.Limits{Messages: e.settings.SendQueue, Bytes: e.settings.SendQueueBytes, Memory: memory},
		Linger:           time.Duration(e.settings.Linger),
		Heartbeat:        time.Duration(e.settings.Heartbeat),
		Log:              e.log, Serve: s.serve, Link: link,
	}
	if reader != "" {
		c.Linger = max(c.Linger, parting)
	}
	var err error
	if s.peers, err = peering.Start(ctx, c); err != nil {
		return nil, err
	}
	if e.bind != nil {
		listens := s.peers.Addresses()[0]
		s.address.Store(&listens)
	}
	if err := s.await(ctx); err != nil {
		_ = s.close(context.WithoutCancel(ctx)) // nothing was published that could be lost
		return nil, err
	}
	return s, nil
}

// readLimit is the most bytes of a message that a peer may send. One that is only
// sent to has nothing to say but what it subscribes to, which is the beginning of
// a name.
func (s *socket) readLimit() int64 {
	if s.push != nil || s.pub != nil {
		return 1 + maxName
	}
	return s.endpoint.wireLimit()
}

// place is where the socket is: with the port that was chosen, once it listens.
func (s *socket) place() string {
	if a := s.address.Load(); a != nil {
		return *a
	}
	return s.endpoint.place()
}

// build makes what the kind of socket consists of.
func (s *socket) build(memory *outq.Memory) {
	e := s.endpoint
	c := sending.Config{
		Address: s.place, Wait: time.Duration(e.settings.PeerWait), Linger: time.Duration(e.settings.Linger),
		Dials: len(e.connect), Memory: memory, Most: e.settings.SendTotalBytes, Log: e.log,
	}
	read := intake.Options{Name: s.reader, Most: e.settings.MaxMessage}
	switch reads := s.reader != ""; e.settings.Pattern {
	case settings.PatternQueue:
		if s.kind = zmq4.Pull; !reads {
			s.kind, s.push = zmq4.Push, sending.NewPush(c)
		}
	case settings.PatternFanOut:
		read.Source = intake.Source{Subscribe: true, Prefix: s.reader}
		if s.kind = zmq4.Sub; !reads {
			s.kind, s.pub = zmq4.Pub, sending.NewPub(c)
		}
	case settings.PatternRPC:
		read.Source = intake.Source{ReplyTo: true}
		if s.kind = zmq4.Router; reads {
			s.router = sending.NewRouter(c)
		} else {
			s.kind, s.dealer = zmq4.Dealer, newDealer(e.log, s.place, sending.NewPush(c))
		}
	}
	if s.reader != "" {
		s.intake = intake.New(read)
	}
}

// serve has a peer from its handshake to its end.
func (s *socket) serve(p *peering.Peer) error {
	err := s.run(p)
	if e, ok := errors.AsType[*zmtp.ProtocolError](err); ok && e.Limit == s.endpoint.wireLimit() {
		return fmt.Errorf("%w, for max_message is %d", err, s.endpoint.settings.MaxMessage)
	}
	return err
}

func (s *socket) run(p *peering.Peer) error {
	switch s.kind {
	case zmq4.Push:
		return s.push.Serve(p)
	case zmq4.Pub:
		return s.pub.Serve(p)
	case zmq4.Dealer:
		return s.dealer.serve(p)
	case zmq4.Router:
		identity, err := s.router.Attach(p)
		if err != nil {
			return err
		}
		err = s.intake.Serve(p, identity)
		s.router.Detach(p, err)
		return err
	}
	return s.intake.Serve(p, nil)
}

// wireLimit is the most bytes that the frames of a message have.
func (e *endpoint) wireLimit() int64 { return e.settings.MaxMessage + frameRoom }

// await waits until a fan-out that dials can publish without losing its first
// message. That nobody is there is no error, since peers come and go.
func (s *socket) await(ctx context.Context) error {
	if s.pub == nil || s.endpoint.bind != nil {
		return nil
	}
	err := s.pub.Ready(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return faultOf("connect endpoint "+s.endpoint.name, context.Cause(ctx))
	}
	s.endpoint.log.Warn("nobody has subscribed: what is published before somebody does waits for peer_wait and is dropped",
		"address", s.place(), "error", err)
	return nil
}

// stop ends reading; replies leave still. Who sends to a queue or a fan-out sees
// the end at once and sends no more.
func (s *socket) stop() {
	s.stopped.Store(true)
	s.peers.StopListening() // first: the peers that stopping ends are then none that have left
	s.intake.Stop()
}

// leave ends the subscription. Who may be waiting for a reply stays connected.
func (s *socket) leave(ctx context.Context) error {
	s.stop()
	if s.kind == zmq4.Router {
		return nil
	}
	return s.close(ctx)
}

// close sends what was published, as long as linger and ctx allow, closes all
// connections, and tells what is lost. It does so once; a later call waits for
// that, and cuts it short when its own ctx ends.
func (s *socket) close(ctx context.Context) error {
	defer context.AfterFunc(ctx, s.peers.Hurry)()
	s.once.Do(func() { s.failed = s.end(ctx) })
	return s.failed
}

func (s *socket) end(ctx context.Context) error {
	switch s.kind {
	case zmq4.Push:
		s.push.Close(ctx)
	case zmq4.Pub:
		s.pub.Close(ctx)
	case zmq4.Dealer:
		s.dealer.close(ctx)
	case zmq4.Router:
		s.stop()
		s.router.Close(ctx)
	default:
		s.stop()
	}
	err := s.peers.Close(ctx)
	if s.intake != nil {
		s.tellLeft()
	}
	s.tellMissed()
	s.tellClosed()
	return err
}

// tellClosed tells what was closed of strangers and peers, in all: the lines about
// each of them are bounded.
func (s *socket) tellClosed() {
	c := s.peers.Counters()
	if s.endpoint.bind == nil || c.Failed+c.TooMany+c.Dropped == 0 {
		return
	}
	s.endpoint.log.Info("connections were closed, in all", "address", s.place(),
		"no_peer", c.Failed, "too_many", c.TooMany, "peers", c.Dropped)
}

// tellMissed tells what peers were not sent, in all: the lines about each of them
// are bounded.
func (s *socket) tellMissed() {
	switch {
	case s.pub != nil:
		if dropped, unwritten := s.pub.Totals(); dropped+unwritten > 0 {
			s.endpoint.log.Warn("subscribers have missed messages, in all", "address", s.place(), "dropped", dropped, "unwritten", unwritten)
		}
	case s.router != nil:
		if lost := s.router.Lost(); lost > 0 {
			s.endpoint.log.Warn("replies were not sent, in all", "address", s.place(), "lost", lost)
		}
	}
}

// tellLeft tells what has come in, or was published to the own subscription, and
// is lost (D16).
func (s *socket) tellLeft() {
	left := s.intake.Left()
	if left.Messages == 0 && left.Own == 0 {
		return
	}
	args := []any{"subscription", s.reader, "read", left.Messages, "bytes", left.Bytes, "own", left.Own}
	if left.Cut > 0 {
		args = append(args, "cut_off", left.Cut)
	}
	s.endpoint.log.Warn("messages are lost: they were read, or published to this subscription, and it has ended before it handled them", args...)
}
