// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// links is what the dialing side tells of its addresses. Link says when the last
// peer is lost and the first is back, which the host logs; where there are
// several addresses, each has its own line as well.
type links struct {
	log       *slog.Logger
	addresses []Address
	link      func(up bool, reason string)
	lines     bool // each address has lines of its own

	mu      sync.Mutex
	down    []bool // it is known not to be connected
	refused []string
	up      int
	state   linkState
	told    linkState
	telling bool
}

// linkState is what Link is told; the zero value is that nothing is known.
type linkState struct {
	known, up bool
	reason    string
}

func newLinks(c Config) *links {
	return &links{
		log: c.Log, addresses: c.Connect, link: c.Link, lines: c.Link == nil || len(c.Connect) > 1,
		down: make([]bool, len(c.Connect)), refused: make([]string, len(c.Connect)),
	}
}

// attached says that an address has a peer.
func (l *links) attached(i int) {
	l.mu.Lock()
	back := l.down[i]
	l.down[i], l.refused[i] = false, ""
	l.up++
	l.state = linkState{known: true, up: true}
	l.mu.Unlock()
	switch {
	case back && l.lines:
		l.log.Info("the connection to a peer is back", "peer", l.addresses[i].String())
	case !back:
		l.log.Debug("connected to a peer", "peer", l.addresses[i].String())
	}
	l.tell()
}

// lost says that the peer of an address has ended.
func (l *links) lost(i int, err error) {
	reason := fmt.Sprintf("%s: %v", l.addresses[i], bare(err))
	l.mu.Lock()
	l.down[i] = true
	l.up--
	if l.up == 0 {
		l.state = linkState{known: true, reason: reason}
	}
	l.mu.Unlock()
	if l.lines {
		l.log.Warn("the connection to a peer is lost", "peer", l.addresses[i].String(), "reason", bare(err).Error())
	}
	l.tell()
}

// failed says that an address could not be reached. The first time in a row is
// told, and further on what a peer that is there has against us, once.
func (l *links) failed(i int, err error) {
	why := bare(err).Error()
	reason := fmt.Sprintf("%s: %s", l.addresses[i], why)
	var handshake *zmtp.HandshakeError
	shaken := errors.As(err, &handshake)
	l.mu.Lock()
	first := !l.down[i]
	news := shaken && l.refused[i] != why
	if shaken {
		l.refused[i] = why
	}
	l.down[i] = true
	if l.up == 0 && !l.state.known {
		l.state = linkState{known: true, reason: reason}
	}
	l.mu.Unlock()
	switch {
	case first && l.lines, !first && news:
		l.log.Warn("a peer cannot be reached", "peer", l.addresses[i].String(), "reason", why)
	default:
		l.log.Debug("a peer cannot be reached", "peer", l.addresses[i].String(), "reason", why)
	}
	l.tell()
}

// tell calls Link until it knows the latest state. One goroutine does so at a
// time, without the lock.
func (l *links) tell() {
	if l.link == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.telling {
		return
	}
	l.telling = true
	for l.told.known != l.state.known || l.told.up != l.state.up {
		l.told = l.state
		state := l.told
		l.mu.Unlock()
		l.link(state.up, state.reason)
		l.mu.Lock()
	}
	l.telling = false
}
