// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// Peer is a connection after its handshake. Its fields do not change.
type Peer struct {
	Conn   *zmtp.Conn
	Out    *outq.Queue
	Remote string // how log lines call it: the address dialed, or where it came from
	Dialed int    // index in Config.Connect, -1 = accepted

	ctx    context.Context
	cancel context.CancelCauseFunc
	since  time.Time
	seen   atomic.Int64  // when something came in last, after since
	ttl    atomic.Int64  // what the peer has asked for; 0 = nothing
	poke   chan struct{} // the watcher's; nil without one
}

// NewPeer returns a peer that nobody watches: without heartbeats, and whose TTL
// is nobody's business.
func NewPeer(conn *zmtp.Conn, out *outq.Queue, remote string, dialed int) *Peer {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Peer{Conn: conn, Out: out, Remote: remote, Dialed: dialed, ctx: ctx, cancel: cancel, since: time.Now()}
}

// Context is done once the peer is closed; its cause is Close's.
func (p *Peer) Context() context.Context { return p.ctx }

// Cause is why the peer was closed, nil while it is not.
func (p *Peer) Cause() error { return context.Cause(p.ctx) }

// Close closes the connection, which ends its reads and writes. The first cause
// stays, nil = it has left. Any goroutine may call it, any number of times.
func (p *Peer) Close(cause error) {
	p.cancel(cmp.Or(cause, ErrLeft))
	_ = p.Conn.NetConn().Close() // nothing is left to be told: what was not written is the queue's to report
}

// Seen says that bytes came in. The one that reads calls it after each read: a
// peer from which nothing comes is closed where heartbeats are on.
func (p *Peer) Seen() { p.seen.Store(int64(time.Since(p.since))) }
