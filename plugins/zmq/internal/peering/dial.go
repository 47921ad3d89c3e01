// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/longshore-go/longshore/plugins/internal/wait"
)

// keepAlive finds a machine that has gone while nothing is sent: within half a
// minute.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// errSelf is a connection whose two ends are one: a dial to a free port of this
// machine may be given that very port as its own.
var errSelf = errors.New("nobody listens there")

// dial opens a connection. Package net sets TCP_NODELAY.
func dial(ctx context.Context, a Address) (net.Conn, error) {
	network, address := a.system()
	nc, err := (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if a.Network == TCP && isSelf(nc) {
		_ = nc.Close()
		return nil, errSelf
	}
	return nc, nil
}

func isSelf(nc net.Conn) bool { return nc.LocalAddr().String() == nc.RemoteAddr().String() }

// keepDialing keeps one address connected until no peers are taken any more.
func (p *Peering) keepDialing(i int) {
	b := newBackoff(p.config.Connect[i])
	for {
		peer, err := p.reach(i)
		switch {
		case err == nil:
			since := time.Now()
			p.links.attached(i)
			err = p.serve(peer)
			b.reset(time.Since(since))
			if p.taking.Err() == nil { // what ends after that is the endpoint's own end, which peers follow
				p.links.lost(i, err)
			}
		case p.taking.Err() == nil:
			p.counters.dialErrors.Add(1)
			p.links.failed(i, err)
		}
		if !wait.For(p.taking, b.pause()) {
			return
		}
	}
}

// reach dials an address and does the handshake, both within one limit.
func (p *Peering) reach(i int) (*Peer, error) {
	ctx, cancel := context.WithTimeout(p.taking, p.config.HandshakeTimeout)
	defer cancel()
	a := p.config.Connect[i]
	nc, err := p.how.dial(ctx, a)
	if err != nil {
		return nil, err
	}
	return p.handshake(ctx, nc, a.String(), i)
}
