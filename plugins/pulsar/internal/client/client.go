// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/internal/wait"
)

// startReserve is the most that a start leaves of its context's time.
const startReserve = time.Second

// defaultMaxMessage is what a broker takes that says nothing else, in bytes (the
// protocol's 5 MiB).
const defaultMaxMessage = 5 << 20

// times are the client's own limits.
type times struct {
	try           time.Duration // of one try, from the dial to the CONNECTED
	first, last   time.Duration // the first pause between tries, and the longest
	settled       time.Duration // how long a connection lives before pauses begin from the first again
	patience      time.Duration // how long a refusal is taken for one that new files will end
	ping, silence time.Duration // nothing has come: a PING leaves, the connection ends
	idle          time.Duration // nobody has wanted a broker's connection: it is closed
}

func defaultTimes() times {
	return times{
		try: 10 * time.Second, first: 100 * time.Millisecond, last: 5 * time.Second, settled: 10 * time.Second,
		patience: time.Minute, ping: 5 * time.Second, silence: 15 * time.Second, idle: time.Minute,
	}
}

// Client is an endpoint's way to its brokers.
//
// 1. Connect returns when a broker has answered, or why none does.
// 2. Its link to the service URL comes and goes, and so do connections to brokers, which
// Broker makes.
// 3. Close ends everything. A client is not started again.
//
// Its methods may be called from any goroutine.
type Client struct {
	config    Config
	times     times
	late      error // why an operation ends that has taken too long
	state     *state
	life      context.Context // ends with Close
	stop      context.CancelFunc
	first     chan struct{} // closed when the first connection is up
	done      chan struct{} // closed when run has returned
	ended     chan struct{} // closed when there will be no other connection, but for Close
	closed    chan struct{} // closed when Close has done all it does
	notice    notice        // run's own
	questions sync.Pool     // of *question
	pool      pool

	mu      sync.Mutex
	started bool
	closing bool
	link    *Conn       // nil = none is up
	limit   int         // the broker's message size
	tries   int         // since the last connection
	last    error       // why the last one failed
	refused time.Time   // the first refusal since the last connection
	final   *core.Fault // why there are no further tries
}

// New returns a client that has not connected yet. Errors are *core.Fault: a file of
// the Config cannot be used.
func New(config Config) (*Client, error) {
	config = config.withDefaults()
	if config.Address.TLS {
		if _, err := config.TLS.load(); err != nil {
			return nil, refusedFile(err)
		}
	}
	if _, err := config.auth(); err != nil {
		return nil, refusedFile(err)
	}
	c := &Client{
		config: config, times: defaultTimes(), state: newState(), limit: defaultMaxMessage,
		first: make(chan struct{}), done: make(chan struct{}), ended: make(chan struct{}), closed: make(chan struct{}),
	}
	c.late = fmt.Errorf("no answer within %v: %w", config.OperationTimeout, context.DeadlineExceeded)
	c.questions.New = newQuestion
	c.pool.conns, c.pool.wanted = make(map[target]*pooledConn), make(map[target]int)
	c.life, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// Connect returns when a broker has answered. What passes is tried again, with the
// next host where there are several, until the Config's ConnectTimeout or ctx is over;
// that is also the end of the client. The error is a *core.Fault with the reason and the
// number of tries. It is called once.
func (c *Client) Connect(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-min(time.Until(end)/10, startReserve)))
		defer cancel()
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.ConnectTimeout)
	defer cancel()
	c.mu.Lock()
	if c.started || c.closing {
		c.mu.Unlock()
		return fault.Closed("connect")
	}
	c.started = true
	c.mu.Unlock()
	go c.run()
	select {
	case <-c.first:
		return nil
	case <-c.done:
	case <-ctx.Done():
		c.stop()
		<-c.done
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.final != nil:
		return c.final
	case ctx.Err() != nil:
		return c.unreachable(context.Cause(ctx))
	}
	return fault.Closed("connect")
}

// run connects, serves the connection, and begins again.
func (c *Client) run() {
	defer close(c.done)
	p := pauses{first: c.times.first, last: c.times.last}
	hosts := c.config.Address.Hosts
	for next := rand.N(len(hosts)); ; next++ {
		l, err := c.connect(target{}, hosts[next%len(hosts)])
		if err == nil {
			var lived time.Duration
			lived, err = c.serve(l)
			if lived >= c.times.settled {
				p.reset()
			}
		} else {
			c.failed(err)
		}
		if c.life.Err() != nil {
			return
		}
		if f := c.fatal(err); f != nil {
			c.end(f)
			return
		}
		if l == nil {
			c.notice.failed(c.config.Log, err)
		}
		c.state.set(false, line(err.Error()))
		if !wait.For(c.life, p.next()) {
			return
		}
	}
}

// serve makes a connection the client's, until its end.
func (c *Client) serve(l *Conn) (lived time.Duration, err error) {
	c.mu.Lock()
	c.link, c.tries, c.last, c.refused = l, 0, nil, time.Time{}
	c.limit = l.MaxMessageSize()
	c.mu.Unlock()
	if c.wasUp() {
		c.config.Log.Info("Pulsar connected again", "host", l.host)
	} else {
		c.config.Log.Info("Pulsar connected", "host", l.host, "version", line(l.hello.ServerVersion))
		close(c.first)
	}
	c.state.set(true, "")
	err = l.run()
	c.mu.Lock()
	c.link = nil
	c.mu.Unlock()
	if c.life.Err() == nil {
		c.config.Log.Debug("Pulsar connection lost", "host", l.host, "reason", err) // the host warns of it
		c.notice.reset()
	}
	return time.Since(l.began), err
}

// failed takes note of a try that failed.
func (c *Client) failed(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	c.mu.Lock()
	c.tries++
	c.last = err
	c.mu.Unlock()
}

// end is the end for good.
func (c *Client) end(f *core.Fault) {
	c.mu.Lock()
	c.final = f
	c.mu.Unlock()
	if c.wasUp() { // else Connect returns it
		c.state.set(false, line(f.Error()))
		close(c.ended)
	}
}

// wasUp reports whether there was a connection.
func (c *Client) wasUp() bool {
	select {
	case <-c.first:
		return true
	default:
		return false
	}
}

// MaxMessageSize is the size of the largest message that the brokers take, in bytes:
// what the last of them has said.
func (c *Client) MaxMessageSize() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limit
}

// Up reports whether a broker can be reached, and a channel that is closed when that
// changes.
func (c *Client) Up() (now bool, changed <-chan struct{}) {
	now, _, changed = c.state.now()
	return now, changed
}

// WatchLink has to told whether a broker can be reached, and why not: the present
// state at once, then each change, one after the other and until Close. to must not
// block. The last call counts.
func (c *Client) WatchLink(to func(up bool, reason string)) { c.state.watch(to) }

// Fatal is closed when the brokers have refused the client for good after Connect;
// Err says why.
func (c *Client) Fatal() <-chan struct{} { return c.ended }

// Err is why the client has ended, nil = it has not, or by Close.
func (c *Client) Err() *core.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.final
}
