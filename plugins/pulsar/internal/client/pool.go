// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// maxRedirects is how many brokers a topic is looked up at, one sending to the next.
const maxRedirects = 20

var errRedirects = fmt.Errorf("brokers have sent from one to the next %d times, and none serves the topic", maxRedirects)

// A ConnectError is a broker that a connection was not made to. It is transient whatever
// the reason: what is for good ends the client, which finds out by itself.
type ConnectError struct {
	Host string // host:port
	Err  error
}

// Error has the host and the reason.
func (e *ConnectError) Error() string { return "connect to " + e.Host + ": " + line(e.Err.Error()) }

// Unwrap returns the reason.
func (e *ConnectError) Unwrap() error { return e.Err }

// fault is the error as a fault of what failed by it.
func (e *ConnectError) fault(what string) *core.Fault {
	a := advice{code: core.FaultUnavailable}
	if refused, ok := errors.AsType[*ServerError](e.Err); ok {
		a = adviceOf(refused.Code)
	} else if errors.Is(e.Err, context.DeadlineExceeded) {
		a.code = core.FaultTimeout
	}
	if errors.Is(e.Err, context.Canceled) {
		a.code = core.FaultCanceled
	}
	a.transient = a.code != core.FaultCanceled
	return a.fault(what, e.Error())
}

// target is whom a connection is for. The zero value is the service URL.
type target struct {
	broker string // host:port of the broker
	proxy  bool   // a host of the service URL passes on what is for it
	slot   int    // of the connections to it
}

// pooled reports whether the connection is one of the pool.
func (t target) pooled() bool { return t.broker != "" }

// pool is the connections to brokers: at most one to a target.
type pool struct {
	running sync.WaitGroup

	mu     sync.Mutex
	wanted map[target]int // how often a connection to a broker was wanted, without slots
	conns  map[target]*pooledConn
	closed bool
}

// pooledConn is a connection that is there or being made.
type pooledConn struct {
	made chan struct{} // closed when one of these is set
	conn *Conn
	err  error
}

// Broker returns a connection to the broker that serves a topic, given in full: it is
// looked up, and connected to unless there is a connection. It takes no longer than
// OperationTimeout, and tries each once. Errors are for Explain: a *ServerError of the
// lookup, a *ConnectError, or that nothing can be asked for.
func (c *Client) Broker(ctx context.Context, topic string) (*Conn, error) {
	ctx, cancel := c.limited(ctx)
	defer cancel()
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l == nil {
		return nil, errDown
	}
	authoritative := false
	for hops, at := 0, l; ; hops++ {
		if hops > maxRedirects {
			return nil, errRedirects
		}
		answer, err := at.Ask(ctx, wire.TypeLookupResponse, func(dst []byte, number uint64) []byte {
			return wire.AppendLookup(dst, number, topic, authoritative, c.config.ListenerName)
		})
		if err != nil {
			return nil, err
		}
		to, err := c.targetOf(&answer)
		if err != nil {
			return nil, err
		}
		next, err := c.pooled(ctx, to)
		if err != nil || !answer.Redirect {
			return next, err
		}
		at, authoritative = next, answer.Authoritative
	}
}

// targetOf is whom an answer to a lookup names.
func (c *Client) targetOf(answer *wire.Command) (target, error) {
	url := answer.Broker
	if c.config.Address.TLS {
		url = answer.BrokerTLS
	}
	if url == "" {
		return target{}, errors.New("the broker that serves the topic names no address for " + c.config.Address.scheme() + "://")
	}
	a, err := ParseURL(url)
	if err != nil || len(a.Hosts) != 1 || a.TLS != c.config.Address.TLS {
		return target{}, fmt.Errorf("the broker that serves the topic has an address that is of no use: %q", line(url))
	}
	return target{broker: a.Hosts[0], proxy: answer.Proxy}, nil
}

// pooled returns the connection to a broker: of several the next one in turn.
func (c *Client) pooled(ctx context.Context, to target) (*Conn, error) {
	p := &c.pool
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	broker := to
	to.slot = p.wanted[broker] % c.config.Connections
	p.wanted[broker]++
	e := p.conns[to]
	if e == nil || e.over() {
		e = &pooledConn{made: make(chan struct{})}
		p.conns[to] = e
		p.running.Go(func() { c.serveBroker(to, e) })
	}
	p.mu.Unlock()
	select {
	case <-e.made:
	case <-ctx.Done():
		return nil, &ConnectError{to.broker, context.Cause(ctx)}
	}
	if e.err != nil {
		return nil, e.err
	}
	if !e.conn.want() { // it has ended at this moment
		return c.pooled(ctx, broker)
	}
	return e.conn, nil
}

// serveBroker makes a connection to a broker and serves it until its end.
func (c *Client) serveBroker(to target, e *pooledConn) {
	host := to.broker
	if to.proxy {
		host = c.proxyHost()
	}
	defer c.pool.remove(to, e)
	var err error
	if e.conn, err = c.connect(to, host); err != nil {
		e.err = &ConnectError{host, err}
		close(e.made)
		return
	}
	close(e.made)
	c.config.Log.Debug("Pulsar broker connected", "host", host, "broker", to.broker)
	err = e.conn.run()
	c.config.Log.Debug("Pulsar broker's connection ended", "host", host, "broker", to.broker, "reason", line(err.Error()))
}

// over reports whether the connection has ended, or was not made.
func (e *pooledConn) over() bool {
	select {
	case <-e.made:
		return e.err != nil || e.conn.Err() != nil
	default:
		return false
	}
}

// proxyHost is a host of the service URL: that of the link where it is up.
func (c *Client) proxyHost() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != nil {
		return c.link.host
	}
	hosts := c.config.Address.Hosts
	return hosts[rand.N(len(hosts))]
}

// remove takes a connection out that is of no use any more.
func (p *pool) remove(to target, e *pooledConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns[to] != e {
		return
	}
	delete(p.conns, to)
	broker := target{broker: to.broker, proxy: to.proxy}
	for other := range p.conns {
		if other.broker == broker.broker && other.proxy == broker.proxy {
			return
		}
	}
	delete(p.wanted, broker)
}

// close has no further connections made.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
}
