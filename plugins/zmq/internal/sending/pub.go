// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// Pub gives each message to every peer that has subscribed to a prefix of its
// name (RFC 29, PUB). It is never faster than the fastest of them: while the
// queues of all are more than half full, and one of them reads, messages wait, in
// order. Nobody waits for those that are slower or read nothing: where a peer's
// queue has no room the message is dropped for that peer alone, and counted.
//
// An endpoint that dials knows its peers late: its messages wait until one of
// them has subscribed, for Config.Wait at most. All methods may be called from
// any goroutine.
type Pub struct {
	config Config

	mu          sync.Mutex
	subscribers []*subscriber
	backlog     backlog
	heard       map[int]bool  // of the dialed addresses: a subscription has come from there
	ready       chan struct{} // closed once one has come from all of them
	drained     chan struct{} // capacity 1: while closing, nothing waits any more
	closing     bool
	closed      bool
	losses      losses
	order       int // of the last message, as the queues know it

	pumping bool
	wake    chan struct{}  // capacity 1: the pump may go on
	running sync.WaitGroup // of the pump
	clock   clock
	full    []*subscriber // of mayGo
}

// subscriber is a peer and what it wants.
type subscriber struct {
	peer    *peering.Peer
	filter  filter
	heard   bool // a subscription has come
	dropped uint64
	untold  uint64 // of dropped, those that no log line has told of
	pace    pace
	held    struct { // of its progress, as asked for while memory is short
		progress int64
		since    time.Time
	}
}

// NewPub returns a Pub without peers.
func NewPub(c Config) *Pub {
	p := &Pub{
		config: c.withDefaults(), heard: make(map[int]bool),
		ready: make(chan struct{}), drained: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		clock: clock{still: stillAfter, age: mostAge},
	}
	p.backlog.wait = p.config.Wait
	return p
}

// Serve attaches a peer, obeys its subscriptions until it ends, and detaches it.
func (p *Pub) Serve(peer *peering.Peer) error {
	s := &subscriber{peer: peer}
	peer.Out.OnRoom(func() { wake(p.wake) })
	p.mu.Lock()
	p.subscribers = append(p.subscribers, s)
	p.mu.Unlock()
	err := peer.Read(func(f *zmtp.Frames) error { return p.subscribe(s, f) }, func() { p.filled(s) })
	p.detach(s, causeOf(peer, err))
	return err
}

// subscribe enters what a peer subscribes to.
func (p *Pub) subscribe(s *subscriber, f *zmtp.Frames) error {
	prefix, on, ok := zmtp.Subscription(f)
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.filter.set(prefix, on)
}

// filled is called when all that came at once is entered: a peer sends its
// subscriptions one after the other, and messages go out when the last is there.
func (p *Pub) filled(s *subscriber) {
	p.mu.Lock()
	if s.heard || len(s.filter.counts) == 0 {
		p.mu.Unlock()
		return
	}
	s.heard = true
	if dialed := s.peer.Dialed; dialed >= 0 && !p.heard[dialed] {
		p.heard[dialed] = true
		if len(p.heard) == p.config.Dials {
			close(p.ready)
		}
	}
	p.mu.Unlock()
	wake(p.wake)
}

// detach ends the queue of a peer that is gone.
func (p *Pub) detach(s *subscriber, cause error) {
	p.mu.Lock()
	i := slices.Index(p.subscribers, s)
	p.subscribers = slices.Delete(p.subscribers, i, i+1)
	p.full = nil // it may hold it too
	if !p.audience() {
		p.backlog.since = time.Now()
	}
	p.mu.Unlock()
	wake(p.wake)
	s.peer.Out.Abort(cause) // its messages have their receipts
	p.mu.Lock()
	line := p.losses.leave(s, s.peer.Out.Lost(), cause)
	p.mu.Unlock()
	line.log(p.config)
}

// audience reports whether messages need not wait: the endpoint binds, or a peer
// has subscribed; p.mu is held.
func (p *Pub) audience() bool {
	if p.config.Dials == 0 {
		return true
	}
	for _, s := range p.subscribers {
		if s.heard {
			return true
		}
	}
	return false
}

// Publish gives a message to all that have subscribed to its name and answers
// the ticket: confirmed when it is in their queues or dropped for those that have
// no room, with Unrouted where nobody has subscribed to it. It never waits; the
// answer comes later where the message does. The bytes of the message must stay
// as they are until then.
func (p *Pub) Publish(m *core.Message, t outq.Ticket) {
	p.mu.Lock()
	var f *core.Fault
	switch {
	case p.closing:
		f = closed(m.Name)
	case p.backlog.len() == 0 && p.audience() && p.mayGo(m):
		routed := p.fan(m)
		line := p.losses.take()
		p.mu.Unlock()
		tell(t, queued(routed))
		line.log(p.config)
		return
	case !p.backlog.push(m, t):
		f = tooMany(m.Name, p.backlog.len(), p.backlog.bytes)
	default:
		p.pump()
	}
	p.mu.Unlock()
	if f != nil {
		refuse(t, f)
	}
}

// fan puts a message into the queues of those that want it and reports whether
// there is one; p.mu is held. It is encoded once, for the first that has room.
func (p *Pub) fan(m *core.Message) bool {
	var shared *outq.Shared
	routed := false
	size := message.Size(m, m.Name)
	tight := !p.fit(size)
	p.order++
	for _, s := range p.subscribers {
		if !s.filter.matches(m.Name) {
			continue
		}
		routed = true
		if tight && s.waits() {
			p.losses.drop(s, 1, lossMemory)
			continue
		}
		if shared == nil && (s.easy(size) || s.peer.Out.Room()) {
			shared = p.config.Memory.Share(size, func(dst []byte) []byte { return message.Append(dst, m, m.Name) })
		}
		if shared == nil || !s.peer.Out.PushShared(shared, outq.Ticket{I: p.order}) {
			p.losses.drop(s, 1, lossRoom)
			continue
		}
		s.pace.took(size)
	}
	if shared != nil {
		shared.Release()
	}
	return routed
}

// queued is the receipt of a message that is in the queues of those that want
// it, or that nobody wants.
func queued(routed bool) pluginapi.Receipt {
	return pluginapi.Receipt{Status: pluginapi.ReceiptConfirmed, Unrouted: !routed}
}
