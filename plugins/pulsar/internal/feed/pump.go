// SPDX-License-Identifier: Apache-2.0

package feed

// pass passes a batch on: to whoever takes them where there is room, which is the way
// without another goroutine. Else it waits in the consumer's queue, which the permits
// bound, and what came before it comes first.
func (m *member) pass(b *Batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		m.p.feed.drop(b) // it comes again
		return
	}
	if !m.pumping {
		select {
		case m.p.feed.batches <- b:
			return
		default:
		}
		m.pumping = true
		m.queue = append(m.queue, b)
		m.pumps.Go(m.pump)
		return
	}
	if n := len(m.queue); n > 0 && m.queue[n-1].absorb(b, places(m.p.feed.ReceiverQueue, 1, batchMessages)) {
		b.from = nil // its bytes are kept by the other
		m.p.feed.drop(b)
		return
	}
	m.queue = append(m.queue, b)
}

// absorb adds the messages of a later batch, unless there are more than most then, or
// more than a batch may keep. It reports whether it has.
func (b *Batch) absorb(next *Batch, most int) bool {
	if len(b.Messages) == 0 || len(next.Messages) == 0 || len(b.Messages)+len(next.Messages) > most || b.bytes+next.bytes > batchBytes {
		return false
	}
	b.Messages = append(b.Messages, next.Messages...)
	b.permits += next.permits
	b.bytes += next.bytes
	return true
}

// pump passes on what waits in the queue, until nothing does or the consumer is stopped.
// What it holds then comes again.
func (m *member) pump() {
	for {
		m.mu.Lock()
		if m.stopped || len(m.queue) == 0 {
			left := m.queue
			m.pumping, m.queue = false, nil
			m.mu.Unlock()
			for _, b := range left {
				m.p.feed.drop(b)
			}
			return
		}
		b := m.queue[0]
		m.queue[0] = nil
		m.queue = m.queue[1:]
		m.mu.Unlock()
		select {
		case m.p.feed.batches <- b:
		case <-m.stop:
			m.p.feed.drop(b)
		}
	}
}

// quit has nothing passed on any more, soon.
func (m *member) quit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.stopped {
		m.stopped = true
		close(m.stop)
	}
}

// halt has nothing passed on any more when it returns.
func (m *member) halt() {
	m.quit()
	m.pumps.Wait()
}
