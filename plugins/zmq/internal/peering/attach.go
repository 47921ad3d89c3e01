// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// ErrLeft is why a peer ended that has closed its connection. Causes that wrap it
// are no warning either.
var ErrLeft = errors.New("the peer has closed the connection")

// handshake makes a peer of a connection, or closes it.
func (p *Peering) handshake(ctx context.Context, nc net.Conn, remote string, dialed int) (*Peer, error) {
	o := p.config.Handshake
	o.Accepted = dialed < 0
	conn, err := zmtp.Open(ctx, nc, o)
	if err != nil {
		p.counters.failed.Add(1)
		return nil, err
	}
	peer := NewPeer(conn, outq.New(conn.NetConn(), p.config.Limits), remote, dialed)
	peer.poke = p.poke
	if !p.add(peer) {
		p.drop(peer, ErrClosed)
		return nil, ErrClosed
	}
	p.counters.attached.Add(1)
	p.wakeWatcher()
	return peer, nil
}

// serve runs Serve for a peer and closes the peer. The error says why it ended.
func (p *Peering) serve(peer *Peer) error {
	err := p.config.Serve(peer)
	if cause := peer.Cause(); cause != nil {
		err = cause // what the reader has seen is only its effect
	}
	switch {
	case err == nil && p.taking.Err() != nil:
		err = ErrClosed // it is we who leave
	case hasLeft(err):
		err = leaving(peer, err)
	}
	p.remove(peer)
	p.drop(peer, err)
	return err
}

// leaving is the error of a peer whose connection has ended. A write that fails,
// as to a machine that is gone, shows as the same end to the one that reads.
func leaving(peer *Peer, err error) error {
	var call syscall.Errno
	if written := peer.Out.Err(); errors.As(written, &call) && !hasLeft(written) {
		return bare(written)
	}
	if errors.Is(err, ErrLeft) {
		return err
	}
	return ErrLeft
}

// publishAgain is what helps a message whose peer was lost.
const publishAgain = "publish it again: another peer, or this one when it is back, gets it"

// drop closes a peer and ends its queue. What nobody took out of it is refused.
func (p *Peering) drop(peer *Peer, cause error) {
	peer.Close(cause)
	for _, u := range peer.Out.Abort(cause) {
		if t := u.Ticket(); t.Done != nil {
			t.Done(t.I, pluginapi.Refused(fault.Passing(core.FaultUnavailable, publishAgain,
				"%s: the connection to %s ended before it was sent: %v", fault.PublishTo(u.Name()), peer.Remote, cause)))
		}
	}
}

// hasLeft reports whether a peer ended as peers do.
func hasLeft(err error) bool {
	return err == nil || errors.Is(err, ErrLeft) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// refuses tells of a connection that became no peer. One that ends without a
// word is left untold: others look whether the port is open.
func (p *Peering) refuses(remote string, err error) {
	if p.taking.Err() != nil || hungUpAtOnce(err) {
		return
	}
	p.say(&p.notices.handshake, func(times int) {
		p.log.Warn("a connection was closed: no peer came of it", "peer", remote, "reason", err.Error(), "times", times)
	})
}

// hungUpAtOnce reports whether a handshake failed for want of any byte.
func hungUpAtOnce(err error) bool {
	var h *zmtp.HandshakeError
	return errors.As(err, &h) && h.Stage == zmtp.StageGreeting && hasLeft(err)
}

// dropped tells of an accepted peer that was closed for what it did.
func (p *Peering) dropped(peer *Peer, err error) {
	switch {
	case errors.Is(err, ErrLeft), errors.Is(err, ErrClosed):
		p.log.Debug("a peer is gone", "peer", peer.Remote, "reason", err.Error())
		return
	}
	p.counters.dropped.Add(1)
	remote := peer.Remote
	p.say(&p.notices.dropped, func(times int) {
		p.log.Warn("a peer's connection was closed", "peer", remote, "reason", err.Error(), "times", times)
	})
}
