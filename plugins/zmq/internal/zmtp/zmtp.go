// SPDX-License-Identifier: Apache-2.0

// Package zmtp speaks ZMTP 3 (RFC 23) on one connection: the handshake, which
// go-zeromq/zmq4 does behind a guard that lets no unchecked byte of the peer
// through to it; and after that the frames, which this package reads into
// pooled memory itself, with limits that count before memory is taken.
//
// # Caveats
//
// What a [Reader] hands out lies in its own memory: it is good until
// [Reader.Spent], or until the [Loan] that [Reader.Lend] filled is released.
package zmtp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
)

// MaxIdentity is the longest identity of a socket (RFC 23: 0*255OCTET).
const MaxIdentity = 255

// Options say how a connection is opened.
type Options struct {
	Type       zmq4.SocketType // our own
	Identity   []byte          // of at most MaxIdentity bytes, empty = none is told to the peer
	Accepted   bool            // the peer dialed us, and speaks first
	MaxMessage int64           // bytes of all frames of one message, required
}

// Conn is a connection whose handshake is done.
type Conn struct {
	nc       net.Conn
	peer     zmq4.SocketType
	identity []byte
	reader   *Reader
}

// PeerType returns the socket type that the peer said it has.
func (c *Conn) PeerType() zmq4.SocketType { return c.peer }

// PeerIdentity returns the identity that the peer gave itself, empty = none.
func (c *Conn) PeerIdentity() []byte { return c.identity }

// NetConn returns the connection itself, for writing and closing.
func (c *Conn) NetConn() net.Conn { return c.nc }

// Reader returns the connection's only reader.
func (c *Conn) Reader() *Reader { return c.reader }

// Open does the whole handshake (RFC 23: greeting, NULL mechanism, READY) on nc
// until ctx ends, whose deadline it obeys. What the peer sends is checked
// before the library sees it. On failure nc is closed and the error is a
// *HandshakeError. Nothing behind the peer's READY is read.
func Open(ctx context.Context, nc net.Conn, o Options) (*Conn, error) {
	if err := check(o); err != nil {
		_ = nc.Close()
		return nil, &HandshakeError{Stage: StageOptions, Err: err}
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = nc.SetDeadline(deadline)
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	g := &guard{Conn: nc, own: o.Type, stage: StageGreeting, ctx: ctx, accepted: o.Accepted}
	_, err := zmq4.Open(g, mechanism{null.Security()}, o.Type, zmq4.SocketIdentity(o.Identity), false, nil)
	if err == nil {
		err = g.finish()
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = nc.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = nc.Close()
		return nil, g.failure(ctx, err)
	}
	return &Conn{nc: nc, peer: g.ready.socket, identity: g.ready.identity, reader: NewReader(nc, o.MaxMessage)}, nil
}

// check refuses what the library panics at, cuts off, or cannot mean.
func check(o Options) error {
	switch {
	case !known(o.Type):
		return fmt.Errorf("unknown socket type %q", o.Type)
	case len(o.Identity) > MaxIdentity:
		return fmt.Errorf("identity of %d bytes: the limit is %d", len(o.Identity), MaxIdentity)
	case o.MaxMessage <= 0:
		return errors.New("no limit for the size of messages")
	}
	return nil
}

// mechanism is the library's NULL mechanism. It leaves an empty identity out of
// READY, as libzmq and the reference do.
type mechanism struct{ zmq4.Security }

// Handshake implements [zmq4.Security].
func (m mechanism) Handshake(c *zmq4.Conn, server bool) error {
	if c.Meta[propertyIdentity] == "" {
		delete(c.Meta, propertyIdentity)
	}
	return m.Security.Handshake(c, server)
}

// partners names the types that go with ours.
func partners(own zmq4.SocketType) string {
	switch own {
	case zmq4.Pull:
		return "PUSH"
	case zmq4.Push:
		return "PULL"
	case zmq4.Sub:
		return "PUB or XPUB"
	case zmq4.Pub:
		return "SUB or XSUB"
	case zmq4.Router:
		return "DEALER or REQ"
	case zmq4.Dealer:
		return "ROUTER or REP"
	default:
		return "of a type that ZeroMQ pairs with it"
	}
}

// known reports whether the library knows a socket type: it panics at others.
func known(t zmq4.SocketType) bool {
	switch t {
	case zmq4.Pair, zmq4.Pub, zmq4.Sub, zmq4.Req, zmq4.Rep, zmq4.Dealer, zmq4.Router, zmq4.Pull, zmq4.Push, zmq4.XPub, zmq4.XSub:
		return true
	default:
		return false
	}
}
