// SPDX-License-Identifier: Apache-2.0

package feed

import "sync"

// defaultBytes is Config.ReceiverBytes where nothing is said: 1,000 messages of 32 KiB.
const defaultBytes = 32 << 20

// flood is how many times Config.ReceiverBytes may wait where messages have suddenly
// become larger: what the broker may send already comes all the same.
const flood = 4

const (
	// ownBytes is about what a message that waits takes beside what was published.
	ownBytes = 192
	// lately is how many messages tell how large they are.
	lately = 256
)

// pace is how far ahead the broker may send to a consumer: as many messages as the
// receiver queue has, and fewer where they are large, one at least. It begins with what
// fits whatever their size, and grows as they come.
type pace struct {
	mu      sync.Mutex
	queue   int // the most
	largest int // the most bytes of a message
	window  int // messages that may be ahead
	owed    int // permits that the broker does not have, of queue

	count, bytes int // of the messages that came lately
	came         int // messages, up to queue
}

// begin returns the permits that the broker begins with, where it may send what has room
// bytes. What is known of the messages' sizes is of an earlier consumer.
func (p *pace) begin(queue, largest, room int, earlier *pace) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue, p.largest = queue, max(largest, 1)
	if earlier != nil {
		earlier.mu.Lock()
		p.count, p.bytes, p.came = earlier.count, earlier.bytes, earlier.came
		earlier.mu.Unlock()
	}
	p.fit(room)
	p.owed = queue - p.window
	return p.window
}

// arrived takes note of messages that have come, and returns how many permits the broker
// gets at once.
func (p *pace) arrived(messages, bytes, room int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count, p.bytes = p.count+messages, p.bytes+bytes+messages*ownBytes
	for p.count > lately {
		p.count, p.bytes = p.count/2, p.bytes/2
	}
	growing := p.came < p.queue
	p.came = min(p.came+messages, p.queue)
	p.fit(room)
	if growing { // whether or not anything is taken
		return p.give(1)
	}
	return p.give(p.part())
}

// left takes note of permits that nobody uses any more, and returns how many the broker
// gets at once.
func (p *pace) left(permits int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owed += permits
	return p.give(p.part())
}

// restart forgets how many have come: a next consumer begins with few.
func (p *pace) restart() {
	p.mu.Lock()
	p.came = 0
	p.mu.Unlock()
}

// fit sets the window. p.mu is held.
func (p *pace) fit(room int) {
	start := max(room/p.largest, 1)
	size := p.largest
	if p.count > 0 {
		size = max(p.bytes/p.count, 1)
	}
	p.window = min(max(room/size, 1), start+2*p.came, p.queue)
}

// part is how many permits are given back at once: the broker always has some, half of the
// window or all of a short one, once nothing waits to be taken. p.mu is held.
func (p *pace) part() int { return max(p.window/2, 1) }

// give gives permits back where there are so many at least. p.mu is held.
func (p *pace) give(least int) int {
	ahead := p.queue - p.owed
	if n := p.window - ahead; n >= least {
		p.owed -= n
		return n
	}
	return 0
}

// hold counts what a batch keeps until it is dropped. Where too much is kept because
// messages have suddenly become larger the consumer is to be made anew: what it has was
// not taken, and comes again in smaller portions.
func (m *member) hold(b *Batch) {
	f := m.p.feed
	own, all := m.held.Add(int64(b.bytes)), f.held.Add(int64(b.bytes))
	most := flood * int64(f.ReceiverBytes)
	if all > most && own > flood*int64(f.share()) {
		m.quit()
		select {
		case m.flooded <- struct{}{}:
		default: // it is known
		}
	}
}

// drop ends that a batch keeps anything.
func (f *Feed) drop(b *Batch) {
	if b.from != nil {
		b.from.held.Add(-int64(b.bytes))
		f.held.Add(-int64(b.bytes))
	}
	f.spare.give(b)
}

// share is how many bytes of one partition may be ahead.
func (f *Feed) share() int { return f.ReceiverBytes / max(int(f.count.Load()), 1) }
