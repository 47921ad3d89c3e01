// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/longshore-go/longshore/internal/conform/liar"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// maxEntries is the limit of runs and results a frame.
const maxEntries = 4096

// subscription is one stream. A goroutine reads what the host says and carries
// it out; the stream's own goroutine sends, since a stream takes one message at
// a time. The queue's lock guards all of it below the line.
type subscription struct {
	p       *plugin
	stream  grpc.ServerStream
	q       *queue
	conduct *liar.Conduct
	done    chan struct{} // closed when nothing of it is left

	// ---
	window    *pb.Credit // nil = none yet
	unsettled map[uint64]*entry
	released  []*entry // they come back at the end
	messages  uint64   // that count against the window
	bytes     uint64
	next      uint64 // id
	outbox    []*pb.SubscribeResponse
	held      []*pb.VerdictRun // of the lie that lets verdicts wait
	stopped   bool             // no more intake
	ended     bool             // and the host knows
	read      bool             // the host says no more
	broken    error            // the stream ends with it
	over      bool
	hold      time.Duration // 0 = for ever
	active    time.Time     // when the host said something last
}

func (p *plugin) subscribe(stream grpc.ServerStream) error {
	if err := p.require("subscribe", isConnected); err != nil {
		return err
	}
	first := &pb.SubscribeRequest{}
	if err := stream.RecvMsg(first); err != nil {
		return orderly(err)
	}
	if first.GetStart() == nil {
		return refuse(fault(conflict, "subscribe: the first message has to be start"))
	}
	s, err := p.open(stream, first.GetStart().GetRegistration())
	if err != nil {
		return err
	}
	defer s.finish()
	started := &pb.Started{Profiles: capabilities(s.q.name, p.hold(), p.rewinds())}
	if s.conduct.Started != nil {
		s.conduct.Started(started)
	}
	if err := stream.SendMsg(&pb.SubscribeResponse{Part: &pb.SubscribeResponse_Started{Started: started}}); err != nil {
		return err
	}
	if s.conduct.Noisy {
		_, _ = os.Stdout.WriteString("subscribed to " + s.q.name + "\n")
	}
	go s.listen()
	return s.send()
}

// open checks a registration and takes its place.
func (p *plugin) open(stream grpc.ServerStream, r *pb.Registration) (*subscription, error) {
	if found := findings("a subscription", r.GetName(), r.GetOptions()); len(found) > 0 {
		f := fault(invalid, "subscribe: the registration is wrong")
		for _, x := range found {
			f.Diagnostics = append(f.Diagnostics, &pb.Diagnostic{Path: x.GetOption(), Message: x.GetMessage(), Fix: x.GetFix()})
		}
		return nil, refuse(f)
	}
	q, wrong := p.store.get(r.GetName())
	if wrong != nil {
		return nil, refuse(wrong)
	}
	s := &subscription{p: p, stream: stream, q: q, conduct: p.conduct.Load(), done: make(chan struct{}),
		unsettled: map[uint64]*entry{}, next: 1, hold: p.hold(), active: time.Now()}
	if err := p.enter(stream.Context(), r.GetId(), s); err != nil {
		p.store.release(q)
		return nil, err
	}
	if s.conduct.Leaks {
		p.leak()
	}
	return s, nil
}

// enter makes s the one stream of its registration. A former one that was
// cancelled is waited for.
func (p *plugin) enter(ctx context.Context, id uint32, s *subscription) error {
	for {
		p.mu.Lock()
		if err := p.check("subscribe", isConnected); err != nil {
			p.mu.Unlock()
			return err
		}
		if s.conduct.OpensOnce || s.conduct.SpendsCut {
			if _, spent := p.spent.Load(id); spent {
				p.mu.Unlock()
				return refuse(fault(closed, "subscribe: registration %d is spent", id))
			}
			if s.conduct.OpensOnce {
				p.spent.Store(id, true)
			}
		}
		former := p.subs[id]
		if former == nil || s.conduct.Repeatable {
			p.subs[id] = s
			p.mu.Unlock()
			return nil
		}
		p.mu.Unlock()
		if former.stream.Context().Err() == nil {
			return refuse(fault(conflict, "subscribe: registration %d has a stream already", id))
		}
		select {
		case <-former.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// finish gives back what is unsettled: the end of the stream is the end of this
// consumer's connection.
func (s *subscription) finish() {
	s.q.mu.Lock()
	s.over = true
	if s.read && s.broken == nil {
		s.settleAtEnd()
	}
	s.giveBack(s.conduct.LosesUnsettled)
	s.q.mu.Unlock()
	if s.conduct.LeaksCut && s.stream.Context().Err() != nil {
		s.p.leak()
	}

	s.p.store.release(s.q)
	s.p.mu.Lock()
	for id, x := range s.p.subs {
		if x == s {
			if s.conduct.SpendsCut && s.stream.Context().Err() != nil {
				s.p.spent.Store(id, true)
			}
			delete(s.p.subs, id)
		}
	}
	s.p.mu.Unlock()
	close(s.done)
}

// giveBack ends all deliveries without a verdict; the lock is held.
func (s *subscription) giveBack(lost bool) {
	cut := s.stream.Context().Err() != nil
	if cut && s.conduct.Former {
		s.p.former.Store(s.q.name, maps.Clone(s.unsettled))
	}
	for _, id := range s.ids() {
		s.released = append(s.released, s.unsettled[id])
	}
	for _, e := range s.released {
		if !lost {
			e.due = 0
			s.q.place(e)
			if cut && s.conduct.DoublesCut {
				twin := *e
				twin.identity = append(slices.Clone(e.identity), '2')
				s.q.place(&twin)
			}
		} else if s.q.journal != nil {
			_ = s.q.done(e)
		}
	}
	clear(s.unsettled)
	if s.released = nil; !s.conduct.VoidKeeps {
		s.messages, s.bytes = 0, 0
	}
}

// ids of unsettled deliveries, in order; the lock is held.
func (s *subscription) ids() []uint64 {
	ids := make([]uint64, 0, len(s.unsettled))
	for id := range s.unsettled {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// settleAtEnd is the verdict that nobody gave; the lock is held.
func (s *subscription) settleAtEnd() {
	if s.conduct.AtEnd == pb.VerdictKind_VERDICT_KIND_UNSPECIFIED {
		return
	}
	for _, id := range s.ids() {
		s.verdict(id, &pb.VerdictRun{Kind: s.conduct.AtEnd, Delay: int64(maxDelay) - 1})
	}
}

// stopAll is the lie of a stop that ends every subscription.
func (p *plugin) stopAll() {
	p.mu.Lock()
	subs := slices.Collect(maps.Values(p.subs))
	p.mu.Unlock()
	for _, s := range subs {
		s.stop()
	}
}

// stop ends intake.
func (s *subscription) stop() {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	s.stopped = true
	s.q.changed.Broadcast()
}

// shut waits until the verdicts that were given before Close have been read,
// then takes the lie's own.
func (s *subscription) shut(end time.Time) {
	quiet(end, func() time.Time {
		s.q.mu.Lock()
		defer s.q.mu.Unlock()
		return s.active
	})
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	s.settleAtEnd()
}

// stillness is how long a stream says nothing before it is taken to have said
// everything: gRPC hands over what came before Close without telling how much
// there is.
const stillness = 20 * time.Millisecond

// quiet waits until nothing has come for a while, or until end.
func quiet(end time.Time, last func() time.Time) {
	for time.Now().Before(end) {
		wait := time.Until(last().Add(stillness))
		if wait <= 0 {
			return
		}
		time.Sleep(wait)
	}
}

// leak keeps something of each subscription.
func (p *plugin) leak() {
	f, err := os.Open(os.DevNull)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		early = append(early, f)
	}
	p.kept = append(p.kept, make([]byte, 64<<10))
}
