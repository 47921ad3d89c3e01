// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// conn is the connected endpoint.
type conn struct {
	endpoint *endpoint

	turn sync.Mutex // held while the socket is opened, exchanged or closed

	mu     sync.Mutex // of what follows
	socket *socket    // nil: none could be opened again, or not yet
	broken error      // why none could
	sent   bool       // something was published or asked for over the socket
	sub    *subscription
	closed bool
	resume []byte
	keep   func([]byte)

	links links
}

// Connect opens the socket that the last Inspect asks for. An address that cannot
// be listened on is an error; that nobody is there yet is none.
func (e *endpoint) Connect(ctx context.Context, resume []byte) (pluginapi.Conn, error) {
	c := &conn{endpoint: e, resume: bytes.Clone(resume)}
	reader := ""
	if len(e.readers) > 0 {
		reader = e.readers[0].Name
	}
	if err := c.open(ctx, reader); err != nil {
		return nil, err
	}
	return c, nil
}

// open opens a socket in place of the one that is closed.
func (c *conn) open(ctx context.Context, reader string) error {
	c.mu.Lock()
	resume := c.resume
	c.mu.Unlock()
	s, err := openSocket(ctx, c.endpoint, reader, resume, c.links.set)
	if err != nil {
		return faultOf("connect endpoint "+c.endpoint.name, err)
	}
	c.mu.Lock()
	c.socket, c.sent = s, false
	keep := c.keep
	changed := false
	if now := s.peers.Resume(); now != nil && !bytes.Equal(now, c.resume) {
		c.resume, changed = now, true
	}
	c.mu.Unlock()
	if changed && keep != nil {
		keep(s.peers.Resume())
	}
	return nil
}

// use returns the socket for something that is sent over it.
func (c *conn) use() *socket {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.sent = true
	return c.socket
}

// unusable says why there is no socket for a call, nil where there is one.
func (c *conn) unusable(s *socket, doing string) *core.Fault {
	if s != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return fault.Closed(doing)
	case c.broken != nil:
		return faultOf(doing, c.broken)
	}
	return fault.Passing(core.FaultUnavailable, "try again in a moment", "%s: the socket is being opened for a subscription", doing)
}

// Subscribe opens the endpoint's subscription. A socket that was opened to send,
// because nothing was inspected, is exchanged while it has sent nothing.
func (c *conn) Subscribe(ctx context.Context, r pluginapi.Registration) (pluginapi.Subscription, error) {
	if bad := badName(r.Name); bad != nil {
		return nil, bad.fault("subscribe")
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	c.mu.Lock()
	s, f := c.socket, c.refuses(r.Name)
	c.mu.Unlock()
	if f != nil {
		return nil, f
	}
	if s == nil || s.reader != r.Name || s.stopped.Load() {
		err := c.exchange(ctx, r.Name)
		c.mu.Lock()
		c.broken = err
		c.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
	sub := &subscription{conn: c, name: r.Name}
	c.mu.Lock()
	defer c.mu.Unlock()
	sub.socket, c.sub = c.socket, sub
	return sub, nil
}

// refuses says why a subscription cannot be opened, nil where it can; c.mu is
// held.
func (c *conn) refuses(name string) *core.Fault {
	e := c.endpoint
	switch {
	case c.closed:
		return fault.Closed("subscribe")
	case c.sub != nil:
		return fault.Refusal(core.FaultConflict, "subscribe to %s: subscription %s reads endpoint %s already, which %s; attach another endpoint for it",
			shown(name), shown(c.sub.name), e.name, e.does())
	case c.socket != nil && c.socket.reader == "" && c.sent:
		return fault.Refusal(core.FaultConflict, "subscribe to %s: endpoint %s, which %s, sends already; attach another endpoint to read",
			shown(name), e.name, e.does())
	}
	return nil
}

// exchange closes the socket and opens one that reads, at the same address.
func (c *conn) exchange(ctx context.Context, reader string) error {
	c.mu.Lock()
	s := c.socket
	c.socket = nil
	c.mu.Unlock()
	if s != nil {
		if err := s.close(ctx); err != nil {
			return faultOf(fmt.Sprintf("subscribe to %s", shown(reader)), err)
		}
	}
	return c.open(ctx, reader)
}

// leave takes note that the subscription has ended.
func (c *conn) leave(s *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sub == s {
		c.sub = nil
	}
}

// Addresses returns where the endpoint listens, with the port that was chosen.
func (c *conn) Addresses() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endpoint.bind == nil || c.socket == nil {
		return nil
	}
	return c.socket.peers.Addresses()
}

// ReportResume hands over the port that was chosen.
func (c *conn) ReportResume(keep func([]byte)) {
	c.mu.Lock()
	c.keep = keep
	resume := c.resume
	c.mu.Unlock()
	if resume != nil {
		keep(resume)
	}
}

// ReportLink reports whether at least one of the peers that are dialed is
// connected. An endpoint that listens is up.
func (c *conn) ReportLink(report func(pluginapi.LinkState)) {
	if c.endpoint.bind != nil {
		report(pluginapi.LinkState{Up: true})
		return
	}
	c.links.report(report)
}

// Close ends reading, sends what was published as long as linger and ctx allow,
// and closes all connections.
func (c *conn) Close(ctx context.Context) ([]byte, error) {
	c.turn.Lock()
	defer c.turn.Unlock()
	c.mu.Lock()
	s, resume := c.socket, c.resume
	c.closed, c.socket = true, nil
	c.mu.Unlock()
	if s == nil {
		return resume, nil
	}
	if err := s.close(ctx); err != nil {
		return resume, faultOf("close endpoint "+c.endpoint.name, err)
	}
	return resume, nil
}

// links passes on the state of the link, under no lock and one after the other.
type links struct {
	mu      sync.Mutex
	last    pluginapi.LinkState
	untold  bool // there is a last that to does not know
	known   bool // there is a last
	to      func(pluginapi.LinkState)
	telling bool
}

func (l *links) set(up bool, reason string) {
	l.mu.Lock()
	l.last, l.known, l.untold = pluginapi.LinkState{Up: up, Reason: reason}, true, true
	l.mu.Unlock()
	l.tell()
}

func (l *links) report(to func(pluginapi.LinkState)) {
	l.mu.Lock()
	l.to, l.untold = to, l.known
	l.mu.Unlock()
	l.tell()
}

// tell reports until the latest state is known. One goroutine does so at a time.
func (l *links) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.telling || l.to == nil {
		return
	}
	l.telling = true
	for l.untold {
		l.untold = false
		state, to := l.last, l.to
		l.mu.Unlock()
		to(state)
		l.mu.Lock()
	}
	l.telling = false
}
