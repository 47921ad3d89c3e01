// SPDX-License-Identifier: Apache-2.0

// Package outbox publishes to Pulsar's topics and tells what became of each message
// (ADR 0122). Topics do not wait for each other; within one, or one of its
// partitions, messages keep the order in which they were added. Every message has
// its receipt within Config.Timeout, whatever the broker and the library do.
//
// # Caveats
//
// A receipt is unknown where the library had the message and no broker has
// confirmed it: it may have been stored. It is refused only where it was not.
//
// A topic's producer that has not confirmed a message within Config.Timeout is
// closed, with all it has not confirmed, and another one is made. So nothing that
// was given up is sent later.
package outbox

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
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
	Library() pulsar.Client
	// Partitions returns how many partitions a topic has, 0 = it is not partitioned.
	Partitions(ctx context.Context, n topic.Name) (int, error)
	// Up reports whether a broker can be reached.
	Up() (now bool, changed <-chan struct{})
}

// Config is what an outbox needs. The zero value of a field is its default.
type Config struct {
	Client Client // required
	// Timeout is how long a message may wait for its receipt. Default 30 s.
	Timeout time.Duration
	// Window is how many messages of a topic the library has at most. Default 1024.
	Window int
	// Producers is how many topics are open at most. Default 256.
	Producers int
	// Name is the producers' name at the broker. Default: the broker gives one.
	Name string
	// Discovery is the time between two looks for new partitions. Default 30 s.
	Discovery time.Duration
	// Compression is what payloads are compressed with. Default: nothing.
	Compression pulsar.CompressionType
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
	// Message is the outbox's from Add on. Its payload stays as it is until Done.
	Message *pulsar.ProducerMessage
	// At is when it was published, now where it is zero.
	At time.Time
	// Done takes the receipt, once, with I. No lock is held. It must not block.
	Done func(i int, r pluginapi.Receipt)
	I    int
}

// Outbox publishes messages. It may be used from any goroutine.
type Outbox struct {
	c    Config
	born time.Time // when the clock of entries was at 0
	copy bool      // the library reads payloads after it has returned

	count atomic.Int64  // messages whose Done has not returned
	rest  chan struct{} // capacity 1: count has become 0
	free  sync.Pool     // of *entry

	mu        sync.Mutex
	lanes     map[topic.Name]*lane
	last      *lane                  // that was used last, nil = none
	producers map[*producer]struct{} // open ones
	closing   map[*producer]struct{}
	slots     int      // of Config.Producers: in use, being made or closed
	waiting   []*lane  // for a slot
	leaving   int      // producers that give theirs back
	bytes     int64    // of messages without a receipt
	answers   []answer // to be given once mu is free
	timer     *time.Timer
	closed    bool
	failed    *core.Fault   // the endpoint has ended
	stop      chan struct{} // closed when nothing more is to be made

	work sync.WaitGroup // goroutines and timers
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
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Outbox{
		c: c, copy: c.Compression == pulsar.NoCompression || c.Batch > 0,
		born: time.Now(), lanes: make(map[topic.Name]*lane),
		producers: make(map[*producer]struct{}), closing: make(map[*producer]struct{}),
		rest: make(chan struct{}, 1), stop: make(chan struct{}),
	}
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
	l.queue.push(e)
	l.pump()
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
	if len(o.answers) == 0 {
		o.mu.Unlock()
		return
	}
	due := o.answers
	o.answers = nil
	o.mu.Unlock()
	for i := range due {
		o.give(&due[i])
	}
}

// give gives a receipt; no lock is held.
func (o *Outbox) give(a *answer) {
	a.done(a.i, a.receipt)
	if o.count.Add(-1) == 0 {
		select {
		case o.rest <- struct{}{}:
		default:
		}
	}
}
