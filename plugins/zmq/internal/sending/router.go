// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
)

// replyName is frame 0 of a reply (reference 3.1).
const replyName = "reply"

// mintedIdentity is the length of an identity given to a peer that has none.
const mintedIdentity = 16

// Router sends each message to the peer that is named (RFC 28, ROUTER). An
// identity is at most one peer's at a time. All methods may be called from any
// goroutine.
type Router struct {
	config Config

	mu     sync.Mutex
	peers  map[string]*peering.Peer
	names  map[*peering.Peer]string
	closed bool
}

// NewRouter returns a Router without peers.
func NewRouter(c Config) *Router {
	return &Router{config: c.withDefaults(), peers: make(map[string]*peering.Peer), names: make(map[*peering.Peer]string)}
}

// delimiter is the empty frame that REQ peers expect before a reply (RFC 28).
var delimiter = [][]byte{{}}

// IdentityError refuses a peer whose identity another one has.
type IdentityError struct {
	Identity []byte
	Peer     string // that is refused
	Holder   string // that has it
}

// Error names both peers.
func (e *IdentityError) Error() string {
	return fmt.Sprintf("the peer %s says that its identity is %x, which the peer %s has; give each its own", e.Peer, e.Identity, e.Holder)
}

// Attach enters a peer and returns its identity: the one it has given, or a
// random one of 16 bytes. One that another peer has is refused with an
// *IdentityError, unless that peer has hung up: then the new one takes its place
// and the former one is closed.
func (r *Router) Attach(p *peering.Peer) (identity []byte, err error) {
	identity = bytes.Clone(p.Conn.PeerIdentity())
	r.mu.Lock()
	former := r.peers[string(identity)]
	if len(identity) == 0 {
		former, identity = nil, r.mint()
	}
	if former != nil && !former.HungUp() {
		r.mu.Unlock()
		return nil, &IdentityError{Identity: identity, Peer: p.Remote, Holder: former.Remote}
	}
	r.peers[string(identity)], r.names[p] = p, string(identity)
	r.mu.Unlock()
	if former != nil {
		former.Close(errHandedOver)
	}
	return identity, nil
}

var errHandedOver = fmt.Errorf("its peer has come back by another connection: %w", peering.ErrLeft)

// mint returns an identity that no peer has; r.mu is held.
func (r *Router) mint() []byte {
	id := make([]byte, mintedIdentity)
	for {
		_, _ = rand.Read(id) // it never fails
		if _, taken := r.peers[string(id)]; !taken {
			return id
		}
	}
}

// Detach ends the queue of a peer with a cause. What it was not sent is refused:
// no other peer has asked for it.
func (r *Router) Detach(p *peering.Peer, cause error) {
	r.mu.Lock()
	identity, there := r.names[p]
	delete(r.names, p)
	if there && r.peers[identity] == p {
		delete(r.peers, identity)
	}
	shut := r.closed
	r.mu.Unlock()
	unsent := p.Out.Abort(causeOf(p, cause))
	for i := range unsent {
		name := unsent[i].Name()
		f := peerGone(name, r.config.Address)
		if shut {
			f = closed(name)
		}
		refuse(unsent[i].Ticket(), f)
	}
}

// Publish sends a message, under the name "reply", to the peer with an identity
// and answers the ticket: confirmed when the operating system has all of it,
// refused when nothing of it was sent, unknown when a part was. A peer that is not
// there is a FaultNotFound, one that does not read a transient FaultExhausted; both
// name m.Name, which is what the message is addressed to. It never waits. The
// bytes of the message must stay as they are until the answer.
func (r *Router) Publish(identity []byte, m *core.Message, t outq.Ticket) {
	r.mu.Lock()
	p, shut := r.peers[string(identity)], r.closed
	r.mu.Unlock()
	switch {
	case shut:
		refuse(t, closed(m.Name))
	case p == nil:
		refuse(t, peerGone(m.Name, r.config.Address))
	case p.Out.Push(m, replyName, prefixFor(p), t):
	case p.Out.Err() != nil:
		refuse(t, peerGone(m.Name, r.config.Address))
	default:
		n, size := p.Out.Depth()
		refuse(t, noRoom(m.Name, p.Remote, n, size))
	}
}

// prefixFor is what comes before the name for this kind of peer.
func prefixFor(p *peering.Peer) [][]byte {
	if p.Conn.PeerType() == zmq4.Req {
		return delimiter
	}
	return nil
}

// Close takes nothing more. Nothing waits outside of the peers' queues, which are
// written by outq's Finish.
func (r *Router) Close(context.Context) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
}
