// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/message"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// Partition is one partition that a feed reads, or a topic that has none.
type Partition struct {
	*message.Source

	feed   *Feed
	named  bool            // the subscription names its topic: it is waited for where it is gone
	ctx    context.Context // ends with the feed, or when the partition is to be read no more
	cancel context.CancelFunc
	done   chan struct{} // closed when its keeper has ended
	said   bool          // the keeper's: that it cannot be read
	pace   *pace         // of the last consumer; who joins the next has it
	seeks  chan *seek
	unread unread

	epoch atomic.Uint64 // counts its consumers, from 1
	valid atomic.Uint64 // batches of smaller epochs are stale

	mu       sync.RWMutex
	member   *member       // nil while there is none
	there    chan struct{} // closed while there is one
	earliest bool          // where a subscription begins that is not there yet
}

// Ack acks entries, whole or in part, and returns when the broker has answered, or at
// once where there is no consumer or it is lost meanwhile. An error says that any of them
// may not be acked; they may be acked again, at once, for whichever consumer there is.
// Any goroutine may call it.
func (p *Partition) Ack(acks []wire.Acked) error {
	m := p.current()
	if m == nil || !m.enter() {
		return p.gone()
	}
	defer m.exit()
	return m.ack(acks)
}

// gone is why acks do not count as taken.
func (p *Partition) gone() *core.Fault {
	return fault.Passing(core.FaultUnavailable, "let it come again", "ack messages of %s: its consumer is gone", p.Scope)
}

// Nack asks for the entries of messages again, on the types where the broker counts
// that: on the others it would send everything again. Where the consumer is gone nothing
// is needed, for everything comes again. It does not wait. Any goroutine may call it.
func (p *Partition) Nack(ids []wire.MessageID) {
	if m := p.current(); m != nil {
		m.nack(ids)
	}
}

// Await waits until the partition has a consumer. It returns ctx's error when that ends
// before, and a fault when the partition is read no more.
func (p *Partition) Await(ctx context.Context) error {
	p.mu.RLock()
	there := p.there
	p.mu.RUnlock()
	select {
	case <-there:
		return nil
	case <-p.ctx.Done():
		return fault.Refusal(core.FaultClosed, "%s is read no more", p.Scope)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Epoch is that of the consumer there is, or of the next one while there is none.
func (p *Partition) Epoch() uint64 { return p.epoch.Load() }

func (p *Partition) current() *member {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.member
}

func (p *Partition) beginsEarliest() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.earliest
}

// beginEarliest makes later consumers begin at the earliest message where their
// subscription is not there: so nothing is missed in a topic that is made again.
func (p *Partition) beginEarliest() {
	p.mu.Lock()
	p.earliest = true
	p.mu.Unlock()
}

// join makes a new consumer the partition's. Where there was one before, all that it
// read comes again. The broker sends nothing before.
func (p *Partition) join(m *member) {
	p.mu.Lock()
	epoch := p.epoch.Add(1)
	p.valid.Store(epoch)
	m.epoch = epoch
	p.member = m
	close(p.there)
	p.mu.Unlock()
	if epoch > 1 {
		m.pass(p.mark(epoch, true))
	}
	m.flow(m.pace.begin(p.feed.ReceiverQueue, m.conn.MaxMessageSize(), p.feed.share(), p.pace))
	p.pace = &m.pace
}

// part ends that m is the partition's consumer: nothing of it is passed on any more.
func (p *Partition) part(m *member) {
	p.mu.Lock()
	p.member = nil
	p.there = make(chan struct{})
	p.mu.Unlock()
	m.halt()
}

// mark is a batch without messages: the partition is back, or lost.
func (p *Partition) mark(epoch uint64, back bool) *Batch {
	b := p.feed.spare.take()
	b.Partition, b.Epoch, b.Back, b.Lost = p, epoch, back, !back
	return b
}
