// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/wait"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// shortMost is how many links in a row may end soon and without a word until that is told.
const shortMost = 5

// startReserve is the most that a start leaves of its time.
const startReserve = time.Second

// Client keeps one connection to a server, and makes the next one when it is lost.
//
// 1. Start connects, and returns when the first link is up, or why there is none.
// 2. Links come and go; the Handler is told.
// 3. Close takes leave of the server, and ends everything. A client is not
// started again.
type Client struct {
	config Config
	times  times
	life   context.Context // ends with Close
	stop   context.CancelFunc
	up     chan struct{} // closed when the first link is up
	done   chan struct{} // closed when run has returned

	mu      sync.Mutex
	started bool
	closing bool
	code    byte        // of the DISCONNECT at the end
	link    *Link       // nil = none is up
	last    error       // why the last attempt failed
	final   *core.Fault // why there are no further attempts

	notice notice // run's own, as what follows
	short  int    // links in a row that the server has closed soon and without a word
}

// New returns a client that does nothing yet.
func New(config Config) *Client {
	if config.ConnectTimeout <= 0 {
		config.ConnectTimeout = DefaultConnectTimeout
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	config.Log = config.Log.With("server", config.Address.String())
	c := &Client{config: config, times: defaultTimes(), up: make(chan struct{}), done: make(chan struct{})}
	c.life, c.stop = context.WithCancel(context.Background())
	return c
}

// Start connects, and returns when the Handler's Up has returned for the first
// link. What passes is tried again until shortly before ctx ends, so that there is
// time to say why; that is also the end of the client. The error is a *core.Fault
// with the reason, or ErrClosed where Close has been called. It is called once.
func (c *Client) Start(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-min(time.Until(end)/10, startReserve)))
		defer cancel()
	}
	c.mu.Lock()
	if c.started || c.closing {
		c.mu.Unlock()
		return ErrClosed
	}
	c.started = true
	c.mu.Unlock()
	go c.run()
	select {
	case <-c.up:
		return nil
	case <-c.done:
	case <-ctx.Done():
		_ = c.Close(context.WithoutCancel(ctx))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.final != nil:
		return c.final
	case ctx.Err() != nil:
		return c.unreachable(c.last, context.Cause(ctx))
	}
	return ErrClosed
}

// Close ends the client: what is to be written is written, a DISCONNECT behind it,
// and the server's end is waited for, for at most 2 s. The server does not publish the
// will, also where it has not accepted the connection yet. When ctx ends before, the connection is cut, and the error says so; all
// goroutines have ended in any case. It must not be called by the Handler. Further
// calls wait for the first.
func (c *Client) Close(ctx context.Context) error { return c.leave(ctx, packet.CodeSuccess) }

// CloseWithWill is Close, but the server publishes the will (3.14.2.1): for an end
// that nobody has asked for.
func (c *Client) CloseWithWill(ctx context.Context) error { return c.leave(ctx, packet.CodeWithWill) }

func (c *Client) leave(ctx context.Context, code byte) error {
	c.mu.Lock()
	first := !c.closing
	c.closing = true
	if first {
		c.code = code
	}
	started, l := c.started, c.link
	c.mu.Unlock()
	c.stop()
	if !started {
		if first {
			close(c.done)
		}
		return nil
	}
	if l != nil {
		l.finish(ErrClosed, code, 0)
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
	}
	if l == nil {
		<-c.done // an attempt ends with life, but for its leave
		return nil
	}
	waiting := l.Waiting()
	l.cut()
	<-c.done
	if waiting == 0 {
		return nil
	}
	return &core.Fault{
		Code: core.FaultTimeout, Message: fmt.Sprintf("%s: cut off with %d bytes that the server has not taken", c.name(), waiting),
	}
}

// run connects, serves the link, and begins again.
func (c *Client) run() {
	defer close(c.done)
	b := backoff{times: c.times}
	for number := uint64(1); ; {
		s, err := c.connect(number)
		if err == nil {
			var lived time.Duration
			lived, err = c.serve(number, s)
			b.reset(lived)
			c.judge(lived, err)
			number++
		}
		if c.life.Err() != nil {
			return
		}
		if f := c.fatal(err); f != nil {
			c.end(f)
			return
		}
		c.mu.Lock()
		c.last = err
		c.mu.Unlock()
		c.notice.failed(c.config.Log, err)
		if !wait.For(c.life, b.pause()) {
			return
		}
	}
}

// serve runs a link from its beginning to its end.
func (c *Client) serve(number uint64, s *shaken) (lived time.Duration, err error) {
	l := newLink(number, s.nc, s.connack.SessionPresent, limitsOf(s.connack, &c.config.Connect), c.times)
	c.mu.Lock()
	c.link = l
	closing, code := c.closing, c.code
	c.mu.Unlock()
	if closing { // between the CONNACK and here
		l.finish(ErrClosed, code, 0)
	}
	h := c.config.Handler
	h.Up(l)
	c.isUp(l)
	l.running.Go(l.writing)
	if l.limits.KeepAlive > 0 {
		l.running.Go(l.keeping)
	}
	l.reading(s.reader, h)
	l.settle()
	c.mu.Lock()
	c.link = nil
	c.mu.Unlock()
	s.reader.Close()
	err = l.reason()
	if !errors.Is(err, ErrClosed) {
		c.log(slog.LevelDebug, "MQTT connection lost", "reason", err) // the host warns of it
		c.notice.reset()
	}
	h.Down(l, err)
	return time.Since(l.began), err
}

// isUp tells of a link that is up.
func (c *Client) isUp(l *Link) {
	session := "session lost"
	switch {
	case l.present:
		session = "session resumed"
	case l.number == 1:
		session = "new session"
	}
	if l.number == 1 {
		c.log(slog.LevelInfo, "MQTT connected: "+session, "client_id", c.config.Connect.ClientID)
		close(c.up)
		return
	}
	if !l.present && l.limits.SessionExpiry > 0 { // which it was to keep
		c.log(slog.LevelWarn, "MQTT connected again: session lost, and with it what the server had kept for it")
		return
	}
	c.log(slog.LevelInfo, "MQTT connected again: "+session)
}

// log logs a step of the connection's life, but while links come and go: then
// judge tells.
func (c *Client) log(level slog.Level, msg string, args ...any) {
	if c.short >= shortMost {
		level = slog.LevelDebug
	}
	c.config.Log.Log(context.Background(), level, msg, args...)
}

// judge looks at a link that has ended. Servers that close a connection without a
// DISCONNECT when another client takes its session over, Mosquitto among them,
// cannot be told from others: two clients of one identifier then end each other's
// connections for ever, at the pace of their pauses. It is said, seldom.
func (c *Client) judge(lived time.Duration, err error) {
	silent := errors.Is(err, ErrLost) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	if lived >= c.times.settled || !silent {
		c.short = 0
		return
	}
	if c.short++; c.short < shortMost {
		return
	}
	c.notice.say(c.config.Log, "MQTT connections do not last: is another client connected under this client_id?",
		"client_id", c.config.Connect.ClientID, "connections", c.short, "reason", err)
}

// end is the end for good.
func (c *Client) end(f *core.Fault) {
	c.mu.Lock()
	c.final = f
	c.mu.Unlock()
	if c.wasUp() { // else Start returns it
		c.config.Handler.Fatal(f)
	}
}

// wasUp reports whether there was a link.
func (c *Client) wasUp() bool {
	select {
	case <-c.up:
		return true
	default:
		return false
	}
}

// name is who connects where, for faults.
func (c *Client) name() string {
	return fmt.Sprintf("MQTT client %q at %s", c.config.Connect.ClientID, c.config.Address)
}
