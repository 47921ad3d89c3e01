// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// The window of a subscription that asks for none: what a host gives.
const (
	windowMessages = 1024
	windowBytes    = 8 << 20
)

// Delivery is one message received.
type Delivery struct {
	frame.Delivery                   // a copy
	Key            string            // of the message that was fed, "" = of none
	Caps           core.Capabilities // of its profile
	At             time.Time

	weight     int64
	decided    bool // a verdict that ends it was sent
	void       bool
	voidedAt   uint64 // how many deliveries had come then
	voidedWhen time.Time
	returns    bool // as the void said
}

// verdict is one verdict sent, for one delivery.
type verdict struct {
	id      uint64
	kind    core.VerdictKind
	asked   bool // its result was wanted
	voided  bool // the delivery was void when the verdict had no result yet
	settled bool // by a result, or by a later one: it was done then
	result  frame.SettleResult
}

// Sub is one subscription's stream. A goroutine takes all that the plugin sends
// and checks it against what holds always.
type Sub struct {
	p       *Process
	t       *Trial
	stream  link.SubscribeStream
	cancel  context.CancelFunc
	wait    sync.WaitGroup
	send    sync.Mutex
	reading sync.Mutex // held by a case that reads nothing for a while

	mu         sync.Mutex
	changed    chan struct{} // closed at every event
	profiles   []core.Capabilities
	windows    []frame.Credit // sent, and perhaps not in force any more
	all        []*Delivery    // by id - 1
	queue      []*Delivery    // not taken by the case yet
	open       int            // deliveries without verdict and void
	bytes      int64          // of them
	verdicts   []*verdict     // in the order sent
	answered   int            // verdicts before it have no result to come
	voids      []*transportpb.Void
	reports    []*transportpb.Report
	soughts    []*transportpb.Sought
	identities map[string]*Delivery // the newest of each
	caughtUp   []int                // how many deliveries had come each time
	stopped    bool
	closed     bool // half
	canceled   bool
	ended      *transportpb.Ended
	started    bool
	over       bool // the stream has ended
	err        error
}

// Subscribe opens the case's subscription with the window of a host. The case
// ends where that fails.
func (p *Process) Subscribe() *Sub {
	s := p.Open(p.t.registration())
	s.Credit(windowMessages, windowBytes)
	return s
}

// Open opens a subscription without credit.
func (p *Process) Open(r *transportpb.Registration) *Sub {
	s, err := p.open(r)
	if err != nil {
		p.t.Fatalf("Subscribe: %v", err)
	}
	return s
}

// open opens a subscription and waits for Started.
func (p *Process) open(r *transportpb.Registration) (*Sub, error) {
	s, err := p.begin(r)
	if err != nil {
		return nil, err
	}
	if !s.until(func() bool { return s.started || s.over }) {
		s.Cancel()
		return nil, errors.New("it is not answered with started")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		return nil, s.err
	}
	return s, nil
}

// begin sends start and does not wait.
func (p *Process) begin(r *transportpb.Registration) (*Sub, error) {
	ctx, cancel := context.WithCancel(p.ctx)
	stream, err := p.link.Subscribe(ctx)
	if err == nil {
		err = stream.Send(&frame.SubscribeRequest{Start: &transportpb.SubscribeStart{Registration: r}})
	}
	if err != nil {
		cancel()
		return nil, err
	}
	s := &Sub{p: p, t: p.t, stream: stream, cancel: cancel, changed: make(chan struct{})}
	p.mu.Lock()
	p.subs = append(p.subs, s)
	p.mu.Unlock()
	s.wait.Go(s.receive)
	return s, nil
}

// Profiles are the capability sets of its deliveries.
func (s *Sub) Profiles() []core.Capabilities { return s.profiles }

// receive takes what the plugin sends until the stream ends.
func (s *Sub) receive() {
	defer s.cancel()
	for {
		s.reading.Lock()
		s.reading.Unlock() //nolint:staticcheck // it waits for the case
		var r frame.SubscribeResponse
		err := s.stream.Recv(&r)
		s.mu.Lock()
		if err != nil {
			s.end(err)
		} else {
			s.take(&r)
		}
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// end notes how the stream ended.
func (s *Sub) end(err error) {
	s.over = true
	switch {
	case s.canceled || !s.p.unexpected(err) && !errors.Is(err, io.EOF):
		s.err = err
	case errors.Is(err, io.EOF):
		if s.started && !s.closed {
			s.t.Errorf("the stream of the subscription ended before the host half-closed it")
		}
		if n := s.waiting(); n > 0 && s.closed {
			s.t.Errorf("the stream ended without the results of %d verdicts that were asked for", n)
		}
	default:
		if s.err = err; s.started {
			s.t.Errorf("the stream of the subscription broke: %v", err)
		}
	}
}

// waiting counts verdicts whose result was asked for and has not come.
func (s *Sub) waiting() int {
	n := 0
	for _, v := range s.verdicts[s.answered:] {
		if v.asked && !v.settled {
			n++
		}
	}
	return n
}

// take takes one message of the plugin; the lock is held.
func (s *Sub) take(r *frame.SubscribeResponse) {
	if !s.started && r.Started == nil {
		s.t.Errorf("the first message of the plugin on the stream is not started")
	}
	switch {
	case r.Started != nil:
		if s.started {
			s.t.Errorf("started came twice")
		}
		s.started, s.profiles = true, convert.ToProfiles(r.Started.GetProfiles())
		if len(s.profiles) == 0 {
			s.t.Errorf("started names no profile")
		}
	case r.Deliveries != nil:
		for i := range r.Deliveries.Items {
			s.deliver(&r.Deliveries.Items[i])
		}
		r.Deliveries.Release()
	case r.Settled != nil:
		for _, result := range r.Settled {
			s.settled(result)
		}
	case r.Void != nil:
		s.void(r.Void)
	case r.Sought != nil:
		s.sought(r.Sought)
	case r.CaughtUp:
		s.caughtUp = append(s.caughtUp, len(s.all))
	case r.Report != nil:
		s.reports = append(s.reports, r.Report)
	case r.Ended != nil:
		if s.ended != nil {
			s.t.Errorf("ended came twice")
		}
		s.ended = r.Ended
	}
}

// deliver takes one delivery.
func (s *Sub) deliver(from *frame.Delivery) {
	d := &Delivery{Delivery: clone(from), At: time.Now(), weight: int64(frame.Weight(&from.Message))}
	d.Key = keyOf(d.Message.Payload)
	if want := uint64(len(s.all)) + 1; d.ID != want {
		s.t.Errorf("delivery ids rise by one from 1: %d came in place of %d", d.ID, want)
	}
	if s.ended != nil {
		s.t.Errorf("delivery %d came behind ended", d.ID)
	}
	if int(d.Profile) < len(s.profiles) {
		d.Caps = s.profiles[d.Profile]
	} else {
		s.t.Errorf("delivery %d has profile %d, started named %d", d.ID, d.Profile, len(s.profiles))
	}
	if d.Caps.Counts == core.CountNative && d.Attempt == 0 {
		s.t.Errorf("delivery %d has attempt 0 though its source counts: the first delivery is 1", d.ID)
	}
	switch w := s.window(); {
	case len(s.windows) == 0:
		s.t.Errorf("delivery %d came before any credit", d.ID)
	case uint64(s.open) >= w.Messages:
		s.t.Errorf("delivery %d came while %d were unsettled and the window was %d messages", d.ID, s.open, w.Messages)
	case uint64(s.bytes) >= w.Bytes:
		s.t.Errorf("delivery %d came while %d bytes were unsettled and the window was %d bytes", d.ID, s.bytes, w.Bytes)
	}
	s.identify(d)
	s.intact(d)
	s.open++
	s.bytes += d.weight
	s.all = append(s.all, d)
	s.queue = append(s.queue, d)
}

// window is the largest window that can be in force.
func (s *Sub) window() frame.Credit {
	var w frame.Credit
	for _, c := range s.windows {
		w.Messages, w.Bytes = max(w.Messages, c.Messages), max(w.Bytes, c.Bytes)
	}
	return w
}

// clone copies a delivery out of its frame.
func clone(d *frame.Delivery) frame.Delivery {
	c := *d
	c.Message = d.Message.Clone()
	c.Identity, c.Position, c.Carry = slices.Clone(d.Identity), slices.Clone(d.Position), slices.Clone(d.Carry)
	return c
}

// settled takes one result; results keep the order of verdicts.
func (s *Sub) settled(r frame.SettleResult) {
	if open := len(s.verdicts) - s.answered; r.Count > uint64(open) {
		s.t.Errorf("a result came for %d deliveries from %d on, and %d verdicts wait for one", r.Count, r.First, open)
		return
	}
	for id := r.First; id < r.First+max(r.Count, 1); id++ {
		at := slices.IndexFunc(s.verdicts[s.answered:], func(v *verdict) bool { return v.id == id && !v.settled })
		if at < 0 {
			s.t.Errorf("a result came for delivery %d, of which no verdict waits for one", id)
			continue
		}
		for _, v := range s.verdicts[s.answered : s.answered+at] {
			if v.asked && !v.settled {
				s.t.Errorf("the result for delivery %d came before the one for %d, whose verdict was sent earlier", id, v.id)
				break // one is enough, there may be thousands
			}
			v.settled = true
		}
		v := s.verdicts[s.answered+at]
		if v.settled, v.result = true, r; r.Status == frame.SettleDone && !v.asked && !v.voided {
			s.t.Errorf("the result DONE for delivery %d was not asked for", id)
		}
		for s.answered < len(s.verdicts) && s.verdicts[s.answered].settled {
			s.answered++
		}
	}
}

// void takes deliveries that ended without a verdict.
func (s *Sub) void(v *transportpb.Void) {
	s.voids = append(s.voids, v)
	named := func(d *Delivery) bool {
		switch {
		case v.GetAll():
			return true
		case v.GetCount() > 0:
			return d.ID >= v.GetFirst() && d.ID-v.GetFirst() < v.GetCount()
		default:
			return d.Scope == v.GetScope()
		}
	}
	if n := v.GetCount(); n > 0 && (v.GetFirst() == 0 || v.GetFirst()+n-1 > uint64(len(s.all))) {
		s.t.Errorf("void names deliveries %d to %d, and %d were sent", v.GetFirst(), v.GetFirst()+n-1, len(s.all))
	}
	s.ranOut(named, v.GetReturns())
}

// change returns a channel that is closed at the next event.
func (s *Sub) change() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// until waits, at most as long as the subject says, for ok, which is called
// with the lock held.
func (s *Sub) until(ok func() bool) bool { return s.await(s.t.Subject.Wait, ok) }
