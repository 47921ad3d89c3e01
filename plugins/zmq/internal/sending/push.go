// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// Push shares messages out: each goes to one peer, the next one in turn whose
// queue has room (RFC 30, PUSH). Where no peer has room messages wait until one
// has; where there is none they wait for Config.Wait and are refused then.
//
// What a peer has not been sent when it is lost goes to the others, before
// everything that waits and in its order. All methods may be called from any
// goroutine.
type Push struct {
	config Config

	mu      sync.Mutex
	members []*member
	next    int // of members, whose turn it is
	backlog backlog
	stall   stall
	holding int // peers that are lost and have not handed back what they were not sent
	closing bool
	closed  bool
	drained chan struct{} // capacity 1: while closing, nothing waits any more
	changed chan struct{} // closed when there is a peer or room; nil while no Send waits
}

// member is a peer that takes part in the rotation.
type member struct {
	peer *peering.Peer
	full bool // its queue had no room, and has not said that it has some

	written uint64    // as its queue last said
	moved   time.Time // when that has changed
}

// NewPush returns a Push without peers.
func NewPush(c Config) *Push {
	p := &Push{config: c.withDefaults(), drained: make(chan struct{}, 1)}
	p.backlog.wait, p.backlog.due = p.config.Wait, p.expire
	p.stall.after, p.stall.due = stallAfter, p.stalled
	return p
}

// Serve attaches a peer, reads it until it ends, and detaches it. What it sends
// is ignored, but for its heartbeats.
func (p *Push) Serve(peer *peering.Peer) error {
	p.Attach(peer)
	err := peer.Read(func(*zmtp.Frames) error { return nil }, func() {})
	p.Detach(peer, causeOf(peer, err))
	return err
}

// Attach lets a peer take part.
func (p *Push) Attach(peer *peering.Peer) {
	m := &member{peer: peer}
	peer.Out.OnRoom(func() { p.room(m) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members = append(p.members, m)
	p.backlog.disarm()
	p.flush()
}

// Detach ends the peer's queue with a cause and gives what it has not been sent
// to the others.
func (p *Push) Detach(peer *peering.Peer, cause error) {
	p.mu.Lock()
	if !p.remove(peer) {
		p.mu.Unlock()
		return
	}
	p.holding++
	p.mu.Unlock()
	unsent := peer.Out.Abort(cause) // waits for the writer, which may be in room
	p.mu.Lock()
	p.holding--
	p.backlog.before(unsent)
	if len(p.members) == 0 {
		p.backlog.since = time.Now()
		p.backlog.disarm()
	}
	p.flush()
	left := p.refused()
	p.mu.Unlock()
	refuseClosed(left)
}

// remove ends a peer's part in the rotation; p.mu is held.
func (p *Push) remove(peer *peering.Peer) bool {
	for i, m := range p.members {
		if m.peer != peer {
			continue
		}
		p.members = slices.Delete(p.members, i, i+1)
		if i < p.next {
			p.next--
		}
		return true
	}
	return false
}

// Publish sends a message to one of the peers, now or when one has room, and
// answers the ticket: confirmed when the operating system has all of it, refused
// when nobody can have it. It never waits. The bytes of the message must stay as
// they are until then.
func (p *Push) Publish(m *core.Message, t outq.Ticket) {
	if f := p.publish(m, t); f != nil {
		refuse(t, f)
	}
}

func (p *Push) publish(m *core.Message, t outq.Ticket) *core.Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closing:
		return closed(m.Name)
	case p.holding == 0 && p.backlog.len() == 0 && p.place(m, nil, t) != nil:
		return nil
	case !p.backlog.push(m, t):
		return tooMany(m.Name, p.backlog.len(), p.backlog.bytes)
	}
	p.watch()
	return nil
}

// place gives a message to the next peer in turn that has room and returns it;
// p.mu is held.
func (p *Push) place(m *core.Message, u *outq.Unsent, t outq.Ticket) *peering.Peer {
	for range p.members {
		if p.next >= len(p.members) {
			p.next = 0
		}
		x := p.members[p.next]
		p.next++
		if x.full {
			continue
		}
		if u != nil && x.peer.Out.PushUnsent(u) || u == nil && x.peer.Out.Push(m, m.Name, requestPrefix(x.peer), t) {
			p.stall.arm(len(p.members))
			return x.peer
		}
		x.full = true
	}
	return nil
}

// requestPrefix is what comes before the name for this kind of peer: a REP socket
// reads requests as REQ sends them, behind an empty frame (RFC 28).
func requestPrefix(p *peering.Peer) [][]byte {
	if p.Conn.PeerType() == zmq4.Rep {
		return emptyFrame
	}
	return nil
}

var emptyFrame = [][]byte{{}}

// room is called when a queue has room again.
func (p *Push) room(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.full = false
	p.flush()
}

// flush sends what waits, as far as there is room, until the end of Close; p.mu
// is held.
func (p *Push) flush() {
	for p.holding == 0 && p.backlog.len() > 0 && !p.closed {
		x := p.backlog.peek()
		if p.place(&x.message, x.unsent, x.ticket) == nil {
			break
		}
		p.backlog.pop()
	}
	p.watch()
	p.tellSenders()
	if p.closing && p.holding == 0 && p.backlog.len() == 0 {
		wake(p.drained)
	}
}

// watch lets the time run while there is no peer; p.mu is held.
func (p *Push) watch() {
	if len(p.members) == 0 && p.holding == 0 && !p.closed {
		p.backlog.arm()
	}
}

// expire refuses what has waited for a peer for long enough.
func (p *Push) expire() {
	p.mu.Lock()
	p.backlog.timer = nil
	var late []pending
	if len(p.members) == 0 && p.holding == 0 && !p.closed {
		late = p.backlog.takeDue(time.Now())
		p.flush()
	}
	p.mu.Unlock()
	for i := range late {
		refuse(late[i].ticket, noPeer("peer", p.config.Address(), late[i].name(), p.config.Wait))
	}
}

// Close takes nothing more and waits until all that waits for a peer is in a
// queue, for Config.Linger and within ctx at most; the rest is refused. What is
// in a queue is written by outq's Finish.
func (p *Push) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.config.Linger)
	defer cancel()
	p.mu.Lock()
	p.closing = true
	p.flush()
	p.mu.Unlock()
	select {
	case <-p.drained:
	case <-ctx.Done():
	}
	p.mu.Lock()
	p.closed = true
	p.backlog.disarm()
	p.stall.disarm()
	left := p.refused()
	p.mu.Unlock()
	p.backlog.running.Wait()
	p.stall.running.Wait()
	refuseClosed(left)
}

// refused takes what is not sent any more once it is closed; p.mu is held.
func (p *Push) refused() []pending {
	if !p.closed {
		return nil
	}
	return p.backlog.takeAll()
}

// refuseClosed answers what was not sent before the end.
func refuseClosed(left []pending) {
	for i := range left {
		refuse(left[i].ticket, closed(left[i].name()))
	}
}
