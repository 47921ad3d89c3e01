// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Account says where the messages of some queues are.
type Account struct {
	Published int // accepted, from tests and from plugins
	Queued, Outstanding, Acked, Rejected,
	DeadLettered, Sent, Lost int
	Deliveries int // a message delivered again counts again
	Doubles    int // came with payload and count header of one before
}

// Settled is how many ended as their source was told.
func (a Account) Settled() int { return a.Acked + a.Rejected + a.DeadLettered }

// Check says what does not add up.
func (a Account) Check() error {
	if sum := a.Queued + a.Outstanding + a.Settled() + a.Sent + a.Lost; sum != a.Published {
		return fmt.Errorf("account of the memory broker: %d published, %d accounted for: %v", a.Published, sum, a)
	}
	return nil
}

// String lists what is not zero.
func (a Account) String() string {
	var b strings.Builder
	for _, n := range []struct {
		name string
		n    int
	}{
		{"published", a.Published}, {"queued", a.Queued}, {"outstanding", a.Outstanding}, {"acked", a.Acked},
		{"rejected", a.Rejected}, {"dead-lettered", a.DeadLettered}, {"sent", a.Sent}, {"lost", a.Lost},
		{"deliveries", a.Deliveries}, {"doubles", a.Doubles},
	} {
		if n.n != 0 {
			fmt.Fprintf(&b, "%s=%d ", n.name, n.n)
		}
	}
	return strings.TrimSpace(b.String())
}

// View shows a broker at one moment; it is valid in the function it is given
// to.
type View struct{ b *Broker }

// Account adds up some queues, all of them when none is named.
func (v View) Account(queues ...string) Account {
	if len(queues) == 0 {
		queues = v.b.names
	}
	var a Account
	for _, name := range queues {
		if q := v.b.queues[name]; q != nil {
			a.add(q.account)
		}
	}
	return a
}

func (a *Account) add(o Account) {
	for s := Queued; s <= Lost; s++ {
		*a.of(s) += *o.of(s)
	}
	a.Published += o.Published
	a.Deliveries += o.Deliveries
	a.Doubles += o.Doubles
}

func (a *Account) of(s State) *int {
	return [...]*int{&a.Queued, &a.Outstanding, &a.Acked, &a.Rejected, &a.DeadLettered, &a.Sent, &a.Lost}[s]
}

// Published returns all that came to a queue, in order.
func (v View) Published(queue string) []Message {
	var ms []Message
	for _, r := range v.b.records(queue) {
		ms = append(ms, r.msg)
	}
	return ms
}

// Outstanding returns what is delivered and unsettled.
func (v View) Outstanding(queue string) []Message {
	var ms []Message
	for _, r := range v.b.records(queue) {
		if r.state == Outstanding {
			ms = append(ms, r.msg)
		}
	}
	return ms
}

// Settled returns what has ended, lost messages included, in order of
// publishing.
func (v View) Settled(queue string) []Settlement {
	var ss []Settlement
	for _, s := range v.All(queue) {
		if s.State != Queued && s.State != Outstanding {
			ss = append(ss, s)
		}
	}
	return ss
}

// All returns every message of a queue and where it is.
func (v View) All(queue string) []Settlement {
	var ss []Settlement
	for _, r := range v.b.records(queue) {
		ss = append(ss, Settlement{
			Message: r.msg, State: r.state, Deliveries: r.count, Reason: r.reason,
			Astray: r.strayed, Forgotten: r.released, Waits: r.due != nil,
		})
	}
	return ss
}

// Subscriptions is how many subscriptions read a queue.
func (v View) Subscriptions(queue string) int {
	n := 0
	for _, c := range v.b.consumers {
		if c.matches(queue) {
			n++
		}
	}
	return n
}

// HeldReceipts is how many receipts HoldReceipts keeps back.
func (v View) HeldReceipts(queue string) int {
	if q := v.b.queues[queue]; q != nil && q.faults.hold != nil {
		return len(q.faults.hold.items)
	}
	return 0
}

func (b *Broker) records(queue string) []*record {
	if q := b.queues[queue]; q != nil {
		return q.records
	}
	return nil
}

// see runs f over a view.
func see[T any](b *Broker, f func(v View) T) T {
	b.mu.Lock()
	defer b.mu.Unlock()
	return f(View{b})
}

// Account adds up some queues, all of them when none is named.
func (b *Broker) Account(queues ...string) Account {
	return see(b, func(v View) Account { return v.Account(queues...) })
}

// Published returns all that came to a queue, in order.
func (b *Broker) Published(queue string) []Message {
	return see(b, func(v View) []Message { return v.Published(queue) })
}

// Outstanding returns what is delivered and unsettled.
func (b *Broker) Outstanding(queue string) []Message {
	return see(b, func(v View) []Message { return v.Outstanding(queue) })
}

// Settled returns what has ended, lost messages included.
func (b *Broker) Settled(queue string) []Settlement {
	return see(b, func(v View) []Settlement { return v.Settled(queue) })
}

// All returns every message of a queue and where it is.
func (b *Broker) All(queue string) []Settlement {
	return see(b, func(v View) []Settlement { return v.All(queue) })
}

// Wait waits until done says so; it is asked at once and after every change,
// with the broker locked, and must not call the broker. what names the thing
// waited for in the error, which also holds the account.
func (b *Broker) Wait(ctx context.Context, what string, done func(v View) bool) error {
	for {
		b.mu.Lock()
		ok, closed, changed := done(View{b}), b.closed, b.changed
		b.mu.Unlock()
		if ok {
			return nil
		}
		if closed {
			return fmt.Errorf("wait for %s: %w", what, errClosed)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; %v", what, context.Cause(ctx), b.Account())
		}
	}
}

// WaitPublished waits until n messages have come to a queue.
func (b *Broker) WaitPublished(ctx context.Context, queue string, n int) error {
	return b.Wait(ctx, fmt.Sprintf("%d messages in %s", n, queue), func(v View) bool {
		return len(v.b.records(queue)) >= n
	})
}

// WaitSettled waits until n messages of a queue have been settled.
func (b *Broker) WaitSettled(ctx context.Context, queue string, n int) error {
	return b.Wait(ctx, fmt.Sprintf("%d settled in %s", n, queue), func(v View) bool {
		return v.Account(queue).Settled() >= n
	})
}

// WaitOutstanding waits until exactly n messages of a queue are delivered and
// unsettled.
func (b *Broker) WaitOutstanding(ctx context.Context, queue string, n int) error {
	return b.Wait(ctx, fmt.Sprintf("%d outstanding in %s", n, queue), func(v View) bool {
		return v.Account(queue).Outstanding == n
	})
}

// WaitDelivered waits until a queue has had n deliveries, repeats included.
func (b *Broker) WaitDelivered(ctx context.Context, queue string, n int) error {
	return b.Wait(ctx, fmt.Sprintf("%d deliveries of %s", n, queue), func(v View) bool {
		return v.Account(queue).Deliveries >= n
	})
}

// WaitIdle waits until the queues, all of them when none is named, have nothing
// queued and nothing outstanding.
func (b *Broker) WaitIdle(ctx context.Context, queues ...string) error {
	return b.Wait(ctx, "an end of all work", func(v View) bool {
		a := v.Account(queues...)
		return a.Queued == 0 && a.Outstanding == 0
	})
}

// WaitSubscribed waits until n subscriptions read a queue.
func (b *Broker) WaitSubscribed(ctx context.Context, queue string, n int) error {
	return b.Wait(ctx, fmt.Sprintf("%d subscriptions of %s", n, queue), func(v View) bool {
		return v.Subscriptions(queue) >= n
	})
}

// Connected reports whether a generation of an endpoint's plugin is connected.
func (v View) Connected(endpoint string, generation uint64) bool {
	return slices.ContainsFunc(v.b.peers, func(p *peer) bool { return p.endpoint == endpoint && p.generation == generation })
}
