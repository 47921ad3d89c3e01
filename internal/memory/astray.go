// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"slices"
	"time"

	"github.com/longshore-go/longshore/core"
)

// delayed is how many of the next deliveries come how much later.
type delayed struct {
	by    time.Duration
	times int
}

// Lose makes the next n deliveries of a queue's messages not arrive. To the
// broker they are unsettled, and go as their profile says.
func (b *Broker) Lose(queue string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue(queue).faults.lose += n
}

// Double makes each of the next n deliveries of a queue arrive twice, as if the
// message had been published twice under one identity. The second one comes
// next.
func (b *Broker) Double(queue string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue(queue).faults.double += n
}

// Delay makes the next n deliveries of a queue come later by d; what is behind
// them goes ahead.
func (b *Broker) Delay(queue string, d time.Duration, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queue(queue)
	q.faults.delays = append(q.faults.delays, delayed{d, n})
}

// Reorder waits until n messages of a queue are ready and delivers them in
// reverse.
func (b *Broker) Reorder(queue string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue(queue).faults.reorder = n
	b.reorders = true
	b.pump()
}

// delay takes the delay of the next delivery, 0 without.
func (f *faults) delay() time.Duration {
	if len(f.delays) == 0 {
		return 0
	}
	d := f.delays[0].by
	if f.delays[0].times--; f.delays[0].times <= 0 {
		f.delays = f.delays[1:]
	}
	return d
}

// reorder turns round what has come together for Reorder.
func (b *Broker) reorder() {
	if !b.reorders {
		return
	}
	b.reorders = false
	for _, name := range b.names {
		q := b.queues[name]
		n := q.faults.reorder
		if n == 0 || len(q.ready) < n {
			b.reorders = b.reorders || n > 0
			continue
		}
		q.faults.reorder = 0
		rs := slices.SortedFunc(slices.Values(q.ready), func(a, b *record) int { return cmp.Compare(a.key, b.key) })[:n]
		keys := make([]int64, n)
		for i, r := range rs {
			keys[i] = r.key
		}
		for i, r := range rs {
			q.drop(r)
			r.key = keys[n-1-i]
		}
		for _, r := range rs {
			q.push(r)
		}
	}
}

// strays carries out Lose. It reports whether the delivery does not arrive. The
// subscription's credit is not used by it.
func (b *Broker) strays(c *consumer, r *record, profile core.Capabilities) bool {
	r.strayed = r.queue.faults.lose > 0
	if !r.strayed {
		return false
	}
	r.queue.faults.lose--
	if profile.Ack == core.AckNone {
		b.lose(r, "lost on command")
		return true
	}
	r.set(Outstanding)
	r.consumer, r.released = c, true
	c.out[r.delivery] = r
	if profile.MaxHold > 0 {
		b.holdFor(r, profile, profile.MaxHold)
	}
	b.notify()
	return true
}

// firstTwin is above the ids of all other messages.
const firstTwin = 1 << 62

// double carries out Double.
func (b *Broker) double(r *record) {
	q := r.queue
	if q.faults.double == 0 || r.msg.Twin != 0 {
		return
	}
	q.faults.double--
	b.twins++
	twin := &record{msg: r.msg, queue: q, key: r.key, index: -1, by: r.by}
	twin.msg.ID, twin.msg.Twin = firstTwin+b.twins, r.msg.ID
	q.add(twin)
	q.account.Doubles++
	q.push(twin)
}
