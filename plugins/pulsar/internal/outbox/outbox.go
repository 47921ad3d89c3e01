// SPDX-License-Identifier: Apache-2.0

// Package outbox publishes to Pulsar's topics and tells what became of each message
// (ADR 0122). Topics do not wait for each other, nor do the partitions of one; within
// one of them messages keep the order in which they were added. Every message has its
// receipt within Config.Timeout, whatever the broker does.
//
// Each partition has a producer, made for its first message. What a broker has not
// confirmed when the connection is lost, or the topic moves, is sent again under the
// same name and numbers, so that a broker with deduplication stores it once.
//
// # Caveats
//
// A receipt is unknown where the message was written to a connection and no broker
// has confirmed it: it may have been stored. It is refused only where it was not.
// Nothing that was given up is sent again.
package outbox

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// The bounds of what may be without a receipt. They lie far above the host's
// window of 1024 messages and 8 MiB, so that they only meet who has none.
const (
	maxMessages = 1 << 14
	maxBytes    = 128 << 20
)

// The defaults of a Config.
const (
	defaultTimeout   = 30 * time.Second
	defaultWindow    = 1024
	defaultProducers = 256
	defaultDiscovery = 30 * time.Second
)

// Client is what an outbox uses of a client.
type Client interface {
	// Partitions returns how many partitions a topic has, 0 = it is not partitioned.
	Partitions(ctx context.Context, n topic.Name) (int, error)
	// Broker returns a connection to the broker that serves a topic or a partition,
	// given in full.
	Broker(ctx context.Context, topic string) (*client.Conn, error)
	// Up reports whether a broker can be reached.
	Up() (now bool, changed <-chan struct{})
}

// Config is what an outbox needs. The zero value of a field is its default.
type Config struct {
	Client Client // required
	// Timeout is how long a message may wait for its receipt. Default 30 s.
	Timeout time.Duration
	// Window is how many messages of a topic, or of each of its partitions, wait for
	// the broker at most. Default 1024.
	Window int
	// Producers is how many topics are open at most. Default 256.
	Producers int
	// Name is the producers' name at the broker. Default: the broker gives one.
	Name string
	// Discovery is the time between two looks for new partitions of a topic that is
	// published to. Default 30 s.
	Discovery time.Duration
	// Compression is what payloads are compressed with. Default: nothing.
	Compression wire.Compression
	// Batch is how long messages of a topic are gathered for one entry, at most
	// BatchMessages of them. Default: each has its own.
	Batch         time.Duration
	BatchMessages int
	// Log takes warnings. Default: nobody reads them.
	Log *slog.Logger
}

// Post is one message to publish.
type Post struct {
	Topic topic.Name
	Name  string // the topic as faults name it
	// Message stays as it is, with all that it points to, until Done: it is read
	// whenever it is written to a connection.
	Message wire.Outgoing
	// At is when it was published, now where it is zero.
	At time.Time
	// Done takes the receipt, once, with I. No lock is held. It must not block.
	Done func(i int, r pluginapi.Receipt)
	I    int
}

// Outbox publishes messages. It may be used from any goroutine.
type Outbox struct {
	c      Config
	born   time.Time       // when the clock of entries was at 0
	life   context.Context // ends when nothing more is to be opened
	stop   context.CancelFunc
	parted context.Context // ends when nothing is waited for any more
	depart context.CancelFunc

	count atomic.Int64  // messages whose Done has not returned
	rest  chan struct{} // capacity 1: count has become 0
	free  sync.Pool     // of *entry
	lists sync.Pool     // of *answers

	// Frames are built, and handed to connections, under mu: they leave in the order
	// of their numbers. A connection does not block then, nor call back.
	mu        sync.Mutex
	lanes     map[topic.Name]*lane
	last      *lane      // that was used last, nil = none
	slots     int        // of Config.Producers: lanes that are open, opened or closed
	waiting   []*lane    // for a slot
	leaving   int        // lanes that give theirs back
	bytes     int64      // of messages without a receipt
	due       *answers   // to be given once mu is free, nil = none
	batch     wire.Batch // that is built
	positions []byte     // room for those of receipts
	timer     *time.Timer
	closed    bool
	failed    *core.Fault // the endpoint has ended

	work sync.WaitGroup // goroutines and the timer
}

// New returns an outbox that has opened nothing yet.
func New(c Config) *Outbox {
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Window <= 0 {
		c.Window = defaultWindow
	}
	if c.Producers <= 0 {
		c.Producers = defaultProducers
	}
	if c.Discovery <= 0 {
		c.Discovery = defaultDiscovery
	}
	if c.Batch <= 0 || c.BatchMessages <= 0 {
		c.Batch, c.BatchMessages = 0, 1
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	o := &Outbox{c: c, born: time.Now(), lanes: make(map[topic.Name]*lane), rest: make(chan struct{}, 1)}
	o.life, o.stop = context.WithCancel(context.Background())
	o.parted, o.depart = context.WithCancel(context.Background())
	return o
}

// Add takes a message and returns at once. Where it returns a fault the message is
// refused and Done is not called.
func (o *Outbox) Add(p *Post) *core.Fault {
	e := o.take(p)
	o.mu.Lock()
	if f := o.refuses(p, e.size); f != nil {
		o.mu.Unlock()
		o.put(e)
		return f
	}
	l := o.lane(p.Topic)
	e.lane = l
	o.count.Add(1)
	o.bytes += e.size
	if o.timer == nil {
		o.arm(o.c.Timeout)
	}
	l.add(e)
	o.leave()
	return nil
}

// lane returns the lane of a topic; o.mu is held.
func (o *Outbox) lane(n topic.Name) *lane {
	if o.last != nil && o.last.topic == n {
		return o.last
	}
	l := o.lanes[n]
	if l == nil {
		l = &lane{o: o, topic: n, base: n.Base().String()}
		o.lanes[n] = l
	}
	o.last = l
	return l
}

// refuses says why nothing is taken now; o.mu is held.
func (o *Outbox) refuses(p *Post, size int64) *core.Fault {
	switch {
	case o.failed != nil:
		return because(p.Name, o.failed)
	case o.closed:
		return fault.Closed(fault.PublishTo(p.Name))
	}
	if n := o.count.Load(); n >= maxMessages || o.bytes+size > maxBytes && n > 0 {
		return fault.Passing(core.FaultExhausted, "publish fewer at a time", "%s: %d messages have no receipt yet", fault.PublishTo(p.Name), n)
	}
	return nil
}

// leave lets go of o.mu and gives the receipts that are due.
func (o *Outbox) leave() {
	due := o.due
	o.due = nil
	o.mu.Unlock()
	if due == nil {
		return
	}
	for i := range due.list {
		a := &due.list[i]
		a.done(a.i, a.receipt)
	}
	n := len(due.list)
	clear(due.list)
	due.list = due.list[:0]
	o.lists.Put(due)
	if o.count.Add(-int64(n)) == 0 {
		select {
		case o.rest <- struct{}{}:
		default:
		}
	}
}

// clock is the time of entries.
func (o *Outbox) clock() time.Duration { return time.Since(o.born) }
