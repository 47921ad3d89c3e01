// SPDX-License-Identifier: Apache-2.0

package feed

import "github.com/apache/pulsar-client-go/pulsar"

// pump passes on what arrives, in batches of what is there. While they are not taken
// it waits, and so does the consumer, whose queue bounds what the broker sends.
func (m *member) pump() {
	defer close(m.pumped)
	for {
		select {
		case <-m.stop:
			return
		case <-m.wake:
			if !m.passBack() {
				return
			}
		case first := <-m.arrived:
			if !m.passBack() || !m.pass(m.gather(first)) {
				return
			}
		}
	}
}

// gather makes a batch of what is there.
func (m *member) gather(first pulsar.ConsumerMessage) *Batch {
	b := m.p.feed.spare.take()
	b.Messages = append(b.Messages, first.Message)
	size := len(first.Payload())
	for len(b.Messages) < batchMessages && size < batchBytes {
		select {
		case next := <-m.arrived:
			b.Messages = append(b.Messages, next.Message)
			size += len(next.Payload())
			continue
		default:
		}
		break
	}
	b.Partition = m.p
	// Not before: what comes on a new connection must not have the old one's epoch.
	b.Epoch = m.p.epoch.Load()
	return b
}

// passBack passes on that the consumer is back, where that is owed.
func (m *member) passBack() bool {
	if !m.back.Swap(false) {
		return true
	}
	b := m.p.feed.spare.take()
	b.Partition, b.Back, b.Epoch = m.p, true, m.p.epoch.Load()
	return m.pass(b)
}

// pass reports false when the pump is to end. What it holds then comes again.
func (m *member) pass(b *Batch) bool {
	select {
	case m.p.feed.batches <- b:
		return true
	case <-m.stop:
		m.p.feed.spare.give(b)
		return false
	}
}
