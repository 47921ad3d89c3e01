// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/feed"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// source is what an intake reads: a feed.
type source interface {
	Batches() <-chan *feed.Batch
	Release(b *feed.Batch)
	Seek(ctx context.Context, to pluginapi.Position) error
	Close(ctx context.Context) error
}

// Config is what an intake receives, and how.
type Config struct {
	Feed    feed.Config       // all but Turn and Ended
	Profile core.Capabilities // of its deliveries; they can be handed back at once
	// AckTimeout is how long the host may have a delivery: then it comes again. 0 = for
	// ever.
	AckTimeout time.Duration
	// BatchWait is how long a retry of one message of a batch waits at most for the others
	// that the host has: they come again together. Default 1 s.
	BatchWait time.Duration
	Log       *slog.Logger
}

// Intake is what one subscription receives: a [pluginapi.Subscription] that hands back
// at once, takes late acks and moves, to be used in [pluginapi.Held].
type Intake struct {
	profile   core.Capabilities
	timeout   time.Duration
	batchWait time.Duration
	counts    bool // the broker counts redeliveries, and brings back single messages
	log       *slog.Logger
	feed      source
	calls     calls

	// Of the goroutine that calls Receive.
	cur   *feed.Batch // taken, and its messages from at on are not handed out yet
	at    int
	used  []*feed.Batch // handed out, and to be released when they are read
	batch builder
	timer *time.Timer

	changed chan struct{} // capacity 1: there is something for Receive
	flushed chan struct{} // capacity 1: a lane has got an answer
	closing chan struct{} // closed by Close
	done    chan struct{} // closed when no acks are sent any more
	senders sync.WaitGroup

	mu       sync.Mutex
	lanes    map[*feed.Partition]*lane
	again    map[*lane]struct{} // that have something in lane.again
	hands    list               // what the ack timeout counts for
	returns  []*entry           // void since the last Receive, and come again
	gone     []*entry           // void, and do not
	nacks    []nack             // to be sent behind the lock
	patient  []patience         // nacks that wait, the earliest first
	retained int64              // bytes of messages that are kept to be delivered again
	acks     int                // that have no answer yet
	blocks   blocks
	fault    *core.Fault // why there is no more
	closed   bool
}

// nack is an entry that the broker is asked for again.
type nack struct {
	partition *feed.Partition
	id        wire.MessageID
}

// calls are what is asked of a partition; tests have their own. Neither keeps what it
// is given.
type calls struct {
	ack  func(*feed.Partition, []wire.Acked) error
	nack func(*feed.Partition, []wire.MessageID)
	// epoch is that of the consumer there is.
	epoch func(*feed.Partition) uint64
}

// Open subscribes. It returns when all partitions are subscribed to; errors are
// *core.Fault.
func Open(ctx context.Context, c Config) (*Intake, error) {
	in := newIntake(c, calls{(*feed.Partition).Ack, (*feed.Partition).Nack, (*feed.Partition).Epoch})
	c.Feed.Turn, c.Feed.Ended = in.turn, in.end
	f, err := feed.Open(ctx, c.Feed)
	if err != nil {
		return nil, err
	}
	in.feed = f
	return in, nil
}

func newIntake(c Config, calls calls) *Intake {
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Intake{
		profile: c.Profile, timeout: c.AckTimeout, batchWait: cmp.Or(c.BatchWait, time.Second), log: log.With("subscription", c.Feed.Subscription), calls: calls,
		counts:  c.Feed.Type.Counts(),
		changed: make(chan struct{}, 1), flushed: make(chan struct{}, 1),
		closing: make(chan struct{}), done: make(chan struct{}),
		lanes: make(map[*feed.Partition]*lane), again: make(map[*lane]struct{}),
	}
}

// Profiles are those of its deliveries: one.
func (in *Intake) Profiles() []core.Capabilities { return []core.Capabilities{in.profile} }

// end ends the subscription with a reason.
func (in *Intake) end(f *core.Fault) {
	in.mu.Lock()
	in.fault = f
	in.mu.Unlock()
	wake(in.changed)
}

// turn hears of whose turn a partition is on Failover. Another consumer's makes void
// what the host has of it; acks count all the same, and what is on the way is delivered
// still. A turn of its own needs nothing: what is not acked comes from the lowest
// message on. It does not block.
func (in *Intake) turn(p *feed.Partition, active bool) {
	if active {
		return
	}
	in.mu.Lock()
	if l := in.lanes[p]; l != nil {
		l.away(time.Now())
	}
	in.mu.Unlock()
	wake(in.changed)
}

// Close sends the acks that wait, and returns when the broker has answered them and
// the consumers are closed (P-09); both within ctx. What is unsettled comes again.
func (in *Intake) Close(ctx context.Context) error {
	in.mu.Lock()
	again := in.closed
	in.closed = true
	for _, l := range in.lanes {
		for _, b := range l.batches {
			l.sendBack(b)
		}
	}
	in.mu.Unlock()
	if again {
		return nil
	}
	close(in.closing)
	if left := in.flush(ctx); left > 0 {
		in.log.Warn("acks were not answered; these messages come again", "messages", left)
	}
	close(in.done)
	err := in.feed.Close(ctx)
	if err == nil {
		in.senders.Wait()
	}
	return err
}

// wake signals a goroutine that looks at the state itself.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
