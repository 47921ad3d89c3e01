// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
	"github.com/longshore-go/longshore/pluginapi/internal/ledger"
)

// The bounds of what a host may have waiting on one subscription. A host that
// keeps to its window stays far below; one that does not ends its own stream.
const (
	maxVerdictRuns = 1 << 17
	maxSeeks       = 16
)

// subscription is one stream: the reader takes what the host says and never
// waits, the receiver runs Receive and passes on what it returned, the sender
// sends the deliveries of several of them in one frame, the settler runs Settle
// and answers. They share what stands under mu.
type subscription struct {
	server   *server
	log      *slog.Logger
	stream   link.ServerSubscribeStream
	sub      Subscription
	profiles []core.Capabilities
	where    string // for breaches
	powers   powers
	canSeek  bool

	ctx    context.Context //nolint:containedctx // of the stream; ends what author code does
	cancel context.CancelFunc

	sending sync.Mutex
	shut    atomic.Bool             // nothing is sent any more
	frame   frame.SubscribeResponse // of deliveries, while they are sent
	lent    []*loan                 // that they lie in
	copies  bool                    // sent, they lie elsewhere

	// moving keeps Seek and verdicts apart: one about a delivery of before that came
	// to the source behind the move would be about what is to come again. It is locked
	// before mu.
	moving sync.Mutex

	mu       sync.Mutex
	ledger   *ledger.Ledger
	open     openFrame
	window   frame.Credit
	stopped  bool        // no more intake
	limit    *time.Timer // of the wait for Receive after a stop
	over     bool        // Ended is sent
	closing  bool        // the host has half-closed: what is queued is the rest
	cut      bool        // the endpoint closed under the subscription: verdicts fail
	seeks    []asked
	recall   context.CancelFunc // of the Receive under way, nil = none
	given    Room               // what that Receive was given
	runs     []frame.VerdictRun // waiting to be settled
	queued   uint64             // how many runs ever have
	carried  uint64             // of them, those that were carried out
	settling bool               // the settler has runs in work
	late     lateTable

	toReceiver chan struct{}
	toSettler  chan struct{}
	toSender   chan struct{}
	received   chan struct{} // closed when the receiver has ended
	settled    chan struct{} // closed when the settler has ended
	sent       chan struct{} // closed when the sender has ended
	ended      chan struct{} // closed when intake has ended and Ended is sent
	idle       chan struct{} // capacity 1: the settler has come to rest
	failed     chan error    // capacity 1: something could not be sent
	forgotten  chan struct{} // closed when another stream may open the registration

	receiver receiver
	settler  settler
}

// Subscribe serves one subscription until the host half-closes or is gone.
func (s *server) Subscribe(stream link.ServerSubscribeStream) error {
	var r frame.SubscribeRequest
	if err := stream.Recv(&r); err != nil {
		if errors.Is(err, io.EOF) {
			return misuse("subscribe", "the first message is start")
		}
		return err
	}
	if r.Start == nil {
		return misuse("subscribe", "the first message is start")
	}
	x, err := s.open(stream, r.Start.GetRegistration())
	if err != nil {
		return err
	}
	defer s.forget(r.Start.GetRegistration().GetId(), x)
	return x.run()
}

// open opens a registration at the transport and checks what it offers.
func (s *server) open(stream link.ServerSubscribeStream, p *transportpb.Registration) (*subscription, error) {
	d, conn, err := s.connected("subscribe")
	if err != nil {
		return nil, err
	}
	reg, wrong := d.registration(p)
	if len(wrong) > 0 {
		return nil, invalid(fmt.Sprintf("options of subscription %q", reg.Name), wrong)
	}
	x := &subscription{
		server: s, stream: stream, copies: link.Copies(stream),
		log:    s.log.With("subscription", reg.Name),
		where:  fmt.Sprintf("subscription %q of transport %s", reg.Name, d.spec.Name),
		ledger: ledger.New(0),

		toReceiver: make(chan struct{}, 1),
		toSettler:  make(chan struct{}, 1),
		toSender:   make(chan struct{}, 1),
		received:   make(chan struct{}),
		settled:    make(chan struct{}),
		sent:       make(chan struct{}),
		ended:      make(chan struct{}),
		idle:       make(chan struct{}, 1),
		failed:     make(chan error, 1),
		forgotten:  make(chan struct{}),
	}
	x.ctx, x.cancel = context.WithCancel(stream.Context())
	if err := s.admit(x.ctx, reg.ID, x); err != nil {
		x.cancel()
		return nil, err
	}
	if err := x.start(d, conn, reg); err != nil {
		x.cancel()
		s.forget(reg.ID, x)
		return nil, err
	}
	return x, nil
}

// admit enters a subscription; there is one a registration. The successor of
// one whose stream was cancelled waits for its end.
func (s *server) admit(ctx context.Context, id uint32, x *subscription) error {
	limit := time.NewTimer(2 * authorLimit) // of a Receive and a Close
	defer limit.Stop()
	for {
		old, err := s.enter(id, x)
		if old == nil {
			return err
		}
		if old.ctx.Err() == nil {
			return misuse("subscribe", fmt.Sprintf("registration %d is open already", id))
		}
		select {
		case <-old.forgotten:
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return misuse("subscribe", fmt.Sprintf("registration %d was cut off and has not ended", id))
		}
	}
}

// enter enters a subscription unless another one of its registration is there,
// which it returns.
func (s *server) enter(id uint32, x *subscription) (old *subscription, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, closedFault("subscribe")
	}
	if old = s.subs[id]; old == nil {
		s.subs[id] = x
	}
	return old, nil
}

// forget removes a subscription.
func (s *server) forget(id uint32, x *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subs[id] == x {
		delete(s.subs, id)
		close(x.forgotten)
	}
}

// start calls the transport's Subscribe, checks the profiles and answers
// Started.
func (x *subscription) start(d *description, conn Conn, reg Registration) error {
	var err error
	if f := contain(x.log, "Subscribe", func() { x.sub, err = conn.Subscribe(x.ctx, reg) }); f != nil {
		return f
	}
	switch {
	case err != nil:
		return faultOf("subscribe", err)
	case x.sub == nil:
		return breach(x.where, "subscription", "is nil without an error", "return a Subscription or an error")
	}
	x.powers = powersOf(x.sub)
	if f := x.check(d, reg); f != nil {
		x.close(false)
		return f
	}
	x.receiver.init(x)
	x.settler.init(x)
	started := &transportpb.Started{Profiles: convert.FromProfiles(x.profiles)}
	if err := x.send(&frame.SubscribeResponse{Started: started}); err != nil {
		x.close(false)
		return err
	}
	return nil
}

// check compares what the subscription offers with what was announced.
func (x *subscription) check(d *description, reg Registration) *core.Fault {
	var profiles []core.Capabilities
	if f := contain(x.log, "Profiles", func() { profiles = x.sub.Profiles() }); f != nil {
		return f
	}
	if len(profiles) == 0 {
		return breach(x.where, "profiles", "is empty", "name at least one capability set")
	}
	if f := crowd(x.where, "profiles", len(profiles)); f != nil {
		return f
	}
	if x.powers.misfit != nil {
		if f := x.powers.misfit(x.where); f != nil {
			return f
		}
	}
	tops, top, named := d.spec.Ceilings, "ceiling", false
	x.server.mu.Lock()
	if in := x.server.inspected; in != nil {
		if ps, ok := in.profiles[reg.ID]; ok {
			tops, top, named = ps, "profile of Inspect", true
		}
	}
	x.server.mu.Unlock()
	for i, p := range profiles {
		if f := profileBreach(x.where, fmt.Sprintf("profiles[%d]", i), p, tops, named, top); f != nil {
			return f
		}
	}
	if d.spec.Seeks && x.powers.seeker == nil {
		return breach(x.where, "seeks", "is announced and the Subscription is no Seeker",
			"implement Seek or leave Spec.Seeks false")
	}
	x.profiles = append([]core.Capabilities(nil), profiles...)
	x.canSeek = d.spec.Seeks
	return nil
}

// run serves the stream after Started.
func (x *subscription) run() error {
	go x.receiver.run()
	go x.settler.run()
	go x.sendOpen()
	err := x.until(x.read)
	if errors.Is(err, io.EOF) {
		err = x.finish()
	}
	select {
	case err = <-x.failed:
	default:
	}
	x.cancel()
	x.stopIntake()
	received, settled := x.await(x.received, "Receive"), x.await(x.settled, "Settle")
	// What an author's call that did not end would send goes nowhere.
	x.shut.Store(true)
	x.retire()
	x.within(x.sent)
	x.close(err == nil && received && settled)
	return err
}

// until runs read on a goroutine of its own, which ends with the stream, and
// returns its error or why the stream cannot be sent on.
func (x *subscription) until(read func() error) error {
	done := make(chan error, 1)
	go func() { done <- read() }()
	select {
	case err := <-done:
		return err
	case err := <-x.failed:
		return err
	}
}

// retire ends what may still be under way for the stream.
func (x *subscription) retire() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	if x.limit != nil {
		x.limit.Stop()
	}
	if f := x.open.take(); f != nil {
		f.Release()
	}
}

// finish ends a stream that the host has half-closed: intake ends, the verdicts
// that are left are carried out and answered.
func (x *subscription) finish() error {
	x.stopIntake()
	select {
	case <-x.ended:
	case <-x.ctx.Done():
	}
	x.mu.Lock()
	x.closing = true
	x.mu.Unlock()
	wake(x.toReceiver)
	wake(x.toSettler)
	select {
	case <-x.settled:
	case <-x.ctx.Done():
	}
	return x.ctx.Err()
}

// await waits for a goroutine in author code, at most for the limit, and reports
// whether it has ended.
func (x *subscription) await(done <-chan struct{}, call string) bool {
	if x.within(done) {
		return true
	}
	x.log.Error("transport does not return from a call that was cancelled; it is left behind", "in", call)
	return false
}

// within waits at most for the limit of author code and reports whether done is
// closed.
func (x *subscription) within(done <-chan struct{}) bool {
	t := time.NewTimer(x.server.options.AuthorLimit)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// read takes what the host says until it half-closes (io.EOF), is lost, or
// breaks the protocol.
func (x *subscription) read() error {
	var r frame.SubscribeRequest
	for {
		if err := x.stream.Recv(&r); err != nil {
			return err
		}
		switch {
		case r.Credit != nil:
			x.credit(*r.Credit)
		case len(r.Settle) > 0:
			if f := x.queue(r.Settle); f != nil {
				return f
			}
		case r.Seek != nil:
			if f := x.queueSeek(r.Seek); f != nil {
				return f
			}
		case r.Stop:
			x.stopIntake()
		case r.Start != nil:
			return misuse("subscribe", "start comes once")
		}
	}
}

// wake signals a goroutine that looks at the state itself.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
