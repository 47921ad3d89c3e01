// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// The reasons of a connection's end.
var (
	errLost   = errors.New("the broker closed the connection")
	errSilent = errors.New("the broker does not answer")
	errStuck  = errors.New("the broker takes nothing")
	errClosed = errors.New("the client is closed")
	errIdle   = errors.New("nobody used the connection")
)

// A LostError is what was asked of a connection that has ended, or ended before the
// answer came. It is transient.
type LostError struct {
	Host   string // host:port of the connection
	Reason error  // why it has ended
}

// Error has the host and the reason. A refusal that ended the connection is none of
// what was asked, so there is no Unwrap.
func (e *LostError) Error() string {
	return "connection to " + e.Host + " lost: " + line(e.Reason.Error())
}

// lost makes an end of file one in words.
func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errLost
	}
	return err
}

// A ConsumerHandler is who gets what a broker sends to one consumer. Its methods are
// called by the goroutine that reads the connection, one at a time, and must not block.
type ConsumerHandler interface {
	// Entry takes a MESSAGE. Its fields are valid during the call, its payload for good.
	Entry(m *wire.Delivery)
	// Pause says that nothing more has come for now: what was gathered is to be passed
	// on. It follows calls of Entry.
	Pause()
	// Active says whose turn it is on Failover.
	Active(now bool)
	// Closed says that the broker has closed the consumer, which is registered no more:
	// nothing follows.
	Closed()
	// Lost says that the connection has ended: nothing follows. err is a *LostError.
	Lost(err error)
}

// A ProducerHandler is who gets what a broker sends to one producer. Its methods must not
// block. But for Room they are called by the goroutine that reads the connection, one at
// a time.
type ProducerHandler interface {
	// Receipt takes a SEND_RECEIPT.
	Receipt(r wire.SendReceipt)
	// Failed takes a SEND_ERROR.
	Failed(sequence uint64, code wire.ServerError, message string)
	// Pause says that nothing more has come for now. It follows calls of Receipt and
	// Failed.
	Pause()
	// Room says that the connection takes more, after Room of the Conn was false. It is
	// called by the goroutine that writes the connection.
	Room()
	// Closed says that the broker has closed the producer, which is registered no more:
	// nothing follows but a Room that is under way.
	Closed()
	// Lost says that the connection has ended: nothing follows but a Room that is under
	// way. err is a *LostError.
	Lost(err error)
}

// Conn is a connection to a broker, from its CONNECTED to its end. It belongs to the
// client, which closes it when nobody has used it for a while. Its methods may be called
// from any goroutine.
//
// One goroutine reads, and calls who is registered; another writes.
type Conn struct {
	client *Client
	to     target
	host   string // of the socket: host:port
	nc     net.Conn
	socket *socket // below TLS
	reader *wire.Reader
	hello  wire.Command // the CONNECTED
	began  time.Time
	done   chan struct{} // closed when the connection has ended
	turns  chan struct{} // one for each request
	out    output

	heard atomic.Int64 // when something has last come, since began, in nanoseconds

	mu        sync.Mutex
	err       *LostError // why it has ended
	number    uint64     // of the last request
	asked     map[uint64]*question
	id        uint64 // of the last consumer or producer
	consumers map[uint64]*seat[ConsumerHandler]
	producers map[uint64]*seat[ProducerHandler]
	used      time.Time // when somebody has last wanted it

	pausing struct { // who is to be told of a pause; the reading goroutine's own
		consumers []*seat[ConsumerHandler]
		producers []*seat[ProducerHandler]
	}
}

// seat is where somebody is registered.
type seat[H any] struct {
	handler H
	told    bool        // something was passed on since the last pause; the reading goroutine's own
	free    atomic.Bool // nobody is registered here any more
}

// newConn returns a connection that shake is to begin.
func newConn(c *Client, to target, host string, nc net.Conn) *Conn {
	l := &Conn{
		client: c, to: to, host: host, nc: nc, began: time.Now(), used: time.Now(),
		done: make(chan struct{}), turns: make(chan struct{}, maxAsked), asked: make(map[uint64]*question),
		consumers: make(map[uint64]*seat[ConsumerHandler]), producers: make(map[uint64]*seat[ProducerHandler]),
	}
	l.reader = wire.NewReader(source{l})
	l.out.wake = make(chan struct{}, 1)
	return l
}

// source is what a connection reads from: it takes note of all that comes.
type source struct{ *Conn }

func (s source) Read(b []byte) (int, error) {
	n, err := s.nc.Read(b)
	if n > 0 {
		s.heard.Store(int64(time.Since(s.began)))
	}
	return n, err
}

// run serves the connection until its end and says why it ended.
func (c *Conn) run() error {
	stop := context.AfterFunc(c.client.life, func() { c.end(errClosed) })
	defer stop()
	var running sync.WaitGroup
	running.Go(c.keep)
	running.Go(c.write)
	c.end(c.read())
	c.pause()
	err := c.leave()
	running.Wait()
	return err.Reason
}

// end ends the connection, because of err where nothing else has ended it yet.
func (c *Conn) end(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = &LostError{c.host, err}
	c.mu.Unlock()
	c.hangUp()
}

// hangUp is the rest of an end, for who has set c.err.
func (c *Conn) hangUp() {
	close(c.done)
	c.out.end()
	c.socket.watched.Store(false) // what TLS says in parting has a limit of its own
	_ = c.nc.Close()
}

// leave tells all who are registered of the end, as the goroutine that has read.
func (c *Conn) leave() *LostError {
	c.mu.Lock()
	consumers, producers := c.consumers, c.producers
	c.consumers, c.producers = nil, nil
	err := c.err
	c.mu.Unlock()
	for _, s := range consumers {
		s.free.Store(true)
		s.handler.Lost(err)
	}
	for _, s := range producers {
		s.free.Store(true)
		s.handler.Lost(err)
	}
	return err
}

// Consumer registers a consumer and returns its id, which is above 0. Where the
// connection has ended already it does nothing and returns 0: what is asked next says so.
func (c *Conn) Consumer(h ConsumerHandler) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0
	}
	c.id++
	c.consumers[c.id] = &seat[ConsumerHandler]{handler: h}
	return c.id
}

// Producer registers a producer as Consumer does a consumer.
func (c *Conn) Producer(h ProducerHandler) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0
	}
	c.id++
	c.producers[c.id] = &seat[ProducerHandler]{handler: h}
	return c.id
}

// ForgetConsumer ends that anything is passed to a consumer. A call that is under way
// may end later: to wait for it would have it and the caller wait for each other.
func (c *Conn) ForgetConsumer(id uint64) { _ = c.forgetConsumer(id) }

// ForgetProducer is ForgetConsumer for producers.
func (c *Conn) ForgetProducer(id uint64) { _ = c.forgetProducer(id) }

func (c *Conn) forgetConsumer(id uint64) *seat[ConsumerHandler] {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.consumers[id]
	if s != nil {
		s.free.Store(true)
		delete(c.consumers, id)
		c.used = time.Now()
	}
	return s
}

func (c *Conn) forgetProducer(id uint64) *seat[ProducerHandler] {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.producers[id]
	if s != nil {
		s.free.Store(true)
		delete(c.producers, id)
		c.used = time.Now()
	}
	return s
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection has ended, a *LostError; nil = it has not.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return nil
	}
	return c.err
}

// MaxMessageSize is the size of the largest message that its broker takes, in bytes.
func (c *Conn) MaxMessageSize() int {
	if n := int(c.hello.MaxMessageSize); n > 0 {
		return n
	}
	return defaultMaxMessage
}
