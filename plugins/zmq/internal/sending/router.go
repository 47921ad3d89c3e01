// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
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
	lost   uint64    // replies that were queued and not written whole
	untold uint64    // of lost, those that no log line has told of
	told   time.Time // of the last line
}

// NewRouter returns a Router without peers.
func NewRouter(c Config) *Router {
	return &Router{config: c.withDefaults(), peers: make(map[string]*peering.Peer), names: make(map[*peering.Peer]string)}
}

// delimiter is the empty frame that REQ peers expect before a reply (RFC 28).
var delimiter = zmtp.AppendHead(nil, 0, true)

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

// Detach ends the queue of a peer with a cause. What it was not sent is lost and
// counted: no other peer has asked for it.
func (r *Router) Detach(p *peering.Peer, cause error) {
	r.mu.Lock()
	identity, there := r.names[p]
	delete(r.names, p)
	if there && r.peers[identity] == p {
		delete(r.peers, identity)
	}
	r.mu.Unlock()
	cause = causeOf(p, cause)
	p.Out.Abort(cause) // its messages have their receipts
	r.tellLost(p, uint64(p.Out.Lost()), cause)
}

// tellLost counts what a peer was not sent and logs it, at most once in
// lossPause.
func (r *Router) tellLost(p *peering.Peer, lost uint64, cause error) {
	if lost == 0 {
		return
	}
	r.mu.Lock()
	r.lost += lost
	r.untold += lost
	untold, total, due := r.untold, r.lost, time.Since(r.told) >= lossPause
	if due {
		r.untold, r.told = 0, time.Now()
	}
	r.mu.Unlock()
	if due {
		r.config.Log.Warn("replies were not sent: who asked is gone",
			"address", r.config.Address(), "peer", p.Remote, "lost", untold, "total", total, "cause", cause)
	}
}

// Lost returns how many replies were queued and not written whole before their
// peer was gone.
func (r *Router) Lost() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// Publish sends a message, under the name "reply", to the peer with an identity
// and answers the ticket: confirmed when it is in the peer's queue, for who asked
// and does not read must not hold up the one that answers. A peer that is not
// there is a FaultNotFound, one whose queue has no room a transient
// FaultExhausted; both name m.Name, which is what the message is addressed to. It
// never waits, and needs the bytes of the message no longer than it runs.
func (r *Router) Publish(identity []byte, m *core.Message, t outq.Ticket) {
	r.mu.Lock()
	p, shut := r.peers[string(identity)], r.closed
	r.mu.Unlock()
	switch {
	case shut:
		refuse(t, closed(m.Name))
	case p == nil:
		refuse(t, peerGone(m.Name, r.config.Address()))
	case p.Out.Room() && r.push(p, m):
		tell(t, queued(true))
	case p.Out.Err() != nil:
		refuse(t, peerGone(m.Name, r.config.Address()))
	default:
		n, size := p.Out.Depth()
		refuse(t, noRoom(m.Name, p.Remote, n, size))
	}
}

// push encodes a message for a peer and puts it into its queue, if there is room.
func (r *Router) push(p *peering.Peer, m *core.Message) bool {
	prefix := prefixFor(p)
	shared := r.config.Memory.Share(message.Size(m, replyName)+len(prefix), func(dst []byte) []byte {
		return message.Append(append(dst, prefix...), m, replyName)
	})
	defer shared.Release()
	return p.Out.PushShared(shared, outq.Ticket{})
}

// prefixFor is what comes before the name for this kind of peer.
func prefixFor(p *peering.Peer) []byte {
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
