// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/message"
)

// firstEpoch is that of a partition's first consumer.
const firstEpoch = 1

// Partition is one partition that a feed reads, or a topic that has none.
type Partition struct {
	*message.Source

	feed  *Feed
	named bool // the subscription names its topic: it is waited for where it is gone

	epoch atomic.Uint64 // raised by each loss of the consumer or its connection
	valid atomic.Uint64 // batches of smaller epochs are stale

	ctx    context.Context // ends with the feed, or when the partition is to be read no more
	cancel context.CancelFunc
	done   chan struct{} // closed when its keeper has ended
	seeks  chan *seek

	mu       sync.RWMutex // of what is below, and for writers of epoch and valid
	member   *member      // nil while there is none
	earliest bool         // where a subscription begins that is not there yet
}

// Ack acks messages by their ids, and returns when the broker has answered or the
// connection is gone: then an error says that any of them may not be acked. Ids come
// from messages, or have partition 0 as the client counts. An entry is acked whole by
// an id with batch index -1. Any goroutine may call it.
func (p *Partition) Ack(ids []pulsar.MessageID) error {
	m := p.current()
	if m == nil || !m.enter() {
		return fault.Passing(core.FaultUnavailable, "let it come again", "ack messages of %s: its consumer is gone", p.Scope)
	}
	defer m.exit()
	return m.consumer.AckIDList(ids)
}

// Nack asks for a message again. Where the consumer is gone nothing is needed, for
// everything comes again. It does not block.
func (p *Partition) Nack(msg pulsar.Message) {
	if m := p.current(); m != nil && m.enter() {
		m.consumer.Nack(msg)
		m.exit()
	}
}

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
// read comes again.
func (p *Partition) join(m *member) {
	p.mu.Lock()
	p.member = m
	again := p.epoch.Load() > firstEpoch
	p.mu.Unlock()
	if again {
		p.back(m)
	}
	p.feed.keepers.Go(m.pump)
}

// part ends that m is the partition's consumer: nothing of it counts any more.
func (p *Partition) part(m *member) {
	p.mu.Lock()
	p.member = nil
	p.mu.Unlock()
	m.halt()
	p.epoch.Add(1)
}

// began raises the epoch when the partition's consumer has lost its connection, before
// anything can arrive on another.
func (p *Partition) began(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.member == m {
		p.epoch.Add(1)
	}
}

// back makes all that was read in earlier epochs stale, and the pump say so.
func (p *Partition) back(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.member == m {
		p.valid.Store(p.epoch.Load())
		m.back.Store(true)
		signal(m.wake)
	}
}
