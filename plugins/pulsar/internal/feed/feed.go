// SPDX-License-Identifier: Apache-2.0

// Package feed reads the topics of one subscription: one consumer for each partition, so
// that each is found, lost, made anew and moved by itself.
package feed

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/message"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// Feed reads the topics of a subscription.
//
// 1. Open returns when all partitions are subscribed to.
// 2. Batches come until Close; Ended of the Config is called where none can come any more.
// 3. Close ends it.
//
// Its methods may be called from any goroutine.
type Feed struct {
	Config
	times times

	batches  chan *Batch
	held     atomic.Int64 // bytes that batches keep which were not released
	count    atomic.Int64 // of partitions
	spare    batches
	openings chan struct{}  // one for each consumer that is being made
	moving   chan struct{}  // holds one: no two seeks at a time
	calls    sync.WaitGroup // requests that nobody waits for

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	keepers sync.WaitGroup
	ended   sync.Once
	closing sync.Once
	closed  chan struct{}

	mu         sync.Mutex
	running    bool // partitions that are added are kept
	stopped    bool
	partitions map[topic.Name]*Partition
	topics     map[topic.Name]*followed // of the subscription, by their names
}

// followed is a topic that is looked at again and again.
type followed struct {
	Topic
	named bool // not found by a pattern
}

// Open subscribes to all partitions there are, and returns when all of them are
// subscribed to (D22). What can pass is tried again, Attempts times or until ctx ends:
// brokers that are busy, and another consumer that has the subscription for itself
// (S-PUL-28). Errors are *core.Fault and name topic and reason.
func Open(ctx context.Context, c Config) (*Feed, error) { return open(ctx, c, defaultTimes()) }

// nameLetters are enough for names by chance to differ: 50 bits.
const nameLetters = 10

func open(ctx context.Context, c Config, t times) (*Feed, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.ReceiverBytes = cmp.Or(c.ReceiverBytes, defaultBytes)
	if c.ConsumerName == "" { // brokers share out by names, and show them
		c.ConsumerName = strings.ToLower(rand.Text()[:nameLetters])
	}
	f := &Feed{
		Config:     c,
		times:      t,
		batches:    make(chan *Batch, places(c.ReceiverQueue, batchMessages, waiting)),
		openings:   make(chan struct{}, opening),
		moving:     make(chan struct{}, 1),
		closed:     make(chan struct{}),
		partitions: map[topic.Name]*Partition{},
		topics:     map[topic.Name]*followed{},
	}
	f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	f.keepers.Go(f.refused)
	if err := f.start(ctx); err != nil {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.times.closing)
		defer cancel()
		_ = f.Close(within) // what is out still ends with its connection
		return nil, err
	}
	f.keepers.Go(f.discover)
	return f, nil
}

// start finds the topics and subscribes to all of their partitions.
func (f *Feed) start(ctx context.Context) error {
	for _, t := range f.Topics {
		f.topics[t.Name] = &followed{Topic: t, named: true}
	}
	if err := f.resolve(ctx); err != nil {
		return err
	}
	all := f.all()
	if f.Pattern != nil && len(all) == 0 {
		f.Log.Warn("no topic matches the pattern yet", "pattern", f.Pattern.String())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(all))
	for _, p := range all {
		f.keepers.Go(func() { errs <- p.begin(ctx) })
	}
	var first error
	for range all {
		if err := <-errs; err != nil && first == nil {
			first = err
			cancel() // the others have no use
		}
	}
	if first != nil {
		f.cancel() // the keepers close what there is
	}
	f.mu.Lock()
	f.running = true
	f.mu.Unlock()
	for _, p := range all {
		f.keepers.Go(p.keep)
	}
	return first
}

// Batches are what has been read. They are bounded, and wait to be taken.
func (f *Feed) Batches() <-chan *Batch { return f.batches }

// Release takes a batch back that was taken from Batches. Its messages stay as they
// are, the slice that they are in does not. The broker sends as many more in their place.
func (f *Feed) Release(b *Batch) {
	from, permits := b.from, b.permits
	f.drop(b)
	if from != nil {
		from.give(permits)
	}
}

// all are the partitions that are read now.
func (f *Feed) all() []*Partition {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*Partition, 0, len(f.partitions))
	for _, p := range f.partitions {
		all = append(all, p)
	}
	return all
}

// add makes a partition of a topic. There is nobody yet who keeps it.
func (f *Feed) add(n topic.Name, t *followed, earliest bool) *Partition {
	p := &Partition{
		Source: message.NewSource(n, t.As), feed: f, named: t.named,
		done: make(chan struct{}), seeks: make(chan *seek), there: make(chan struct{}), earliest: earliest,
	}
	p.ctx, p.cancel = context.WithCancel(f.ctx)
	f.partitions[n] = p
	f.count.Store(int64(len(f.partitions)))
	return p
}

// end says that nothing can be read any more.
func (f *Feed) end(fault *core.Fault) {
	f.ended.Do(func() {
		if f.Ended != nil {
			f.Ended(fault)
		}
	})
}

// refused ends the feed when the brokers have refused its client for good: no consumer
// comes back then, and those that are there stay only by chance.
func (f *Feed) refused() {
	select {
	case <-f.Client.Fatal():
		f.end(fault.Of(fmt.Sprintf("read subscription %q", f.Subscription), f.Client.Err()))
	case <-f.ctx.Done():
	}
}

// Close ends the feed: it waits until the brokers have closed all consumers, or ctx
// ends, and returns ctx's error then. What is not acked comes again.
func (f *Feed) Close(ctx context.Context) error {
	f.closing.Do(func() {
		f.mu.Lock()
		f.stopped = true
		f.mu.Unlock()
		f.cancel()
		go func() {
			f.keepers.Wait()
			f.calls.Wait()
			close(f.closed)
		}()
	})
	select {
	case <-f.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the consumers of subscription %q: %w", f.Subscription, ctx.Err())
	}
}
