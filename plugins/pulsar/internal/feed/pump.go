// SPDX-License-Identifier: Apache-2.0

package feed

import "github.com/apache/pulsar-client-go/pulsar"

// pump passes on what arrives, in batches of what is there. While they are not taken
// it waits, and so does the consumer, whose queue bounds what the broker sends. What it
// holds at its end comes again.
func (m *member) pump() {
	defer close(m.pumped)
	if m.back && !m.pass(m.p.mark(m.epoch, true)) {
		return
	}
	for {
		select {
		case <-m.stop:
			return
		case first := <-m.arrived:
			if !m.pass(m.gather(first)) {
				return
			}
		}
	}
}

// gather makes a batch of what is there.
func (m *member) gather(first pulsar.ConsumerMessage) *Batch {
	b := m.p.feed.spare.take()
	b.Partition, b.Epoch = m.p, m.epoch
	b.Messages = append(b.Messages, first.Message)
	size := len(first.Payload())
	for most := places(m.p.feed.ReceiverQueue, 1, batchMessages); len(b.Messages) < most && size < batchBytes; {
		select {
		case next := <-m.arrived:
			b.Messages = append(b.Messages, next.Message)
			size += len(next.Payload())
			continue
		default:
		}
		break
	}
	return b
}

// pass reports false when the pump is to end.
func (m *member) pass(b *Batch) bool {
	select {
	case m.p.feed.batches <- b:
		return true
	case <-m.stop:
		m.p.feed.spare.give(b)
		return false
	}
}

// mark is a batch without messages: the partition is back, or lost.
func (p *Partition) mark(epoch uint64, back bool) *Batch {
	b := p.feed.spare.take()
	b.Partition, b.Epoch, b.Back, b.Lost = p, epoch, back, !back
	return b
}
