// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// Route is the partition of n that a message with keys goes to.
func Route(key, orderingKey string, n int) int {
	at, _ := route(&wire.Outgoing{Key: key, OrderingKey: orderingKey}, n, 0)
	return at
}

// ReceiptFor is the receipt of a message that no broker takes, which was written so
// many times.
func ReceiptFor(why *core.Fault, tries int) pluginapi.Receipt {
	return (&entry{name: "t", tries: tries}).without(why)
}

// AwaitDown waits until a producer has lost its broker.
func (o *Outbox) AwaitDown(tb testing.TB) {
	tb.Helper()
	o.awaitPart(tb, "no producer is down", func(p *part) bool { return p.session == nil && p.given != "" })
}

// Later has an hour pass, while nothing waits.
func (o *Outbox) Later() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.born = o.born.Add(-time.Hour)
}

// AwaitSent waits until n messages of a topic or partition were written and have no
// receipt.
func (o *Outbox) AwaitSent(tb testing.TB, n int) {
	tb.Helper()
	o.awaitPart(tb, "not as many messages were sent", func(p *part) bool { return p.sent.n >= n })
}

func (o *Outbox) awaitPart(tb testing.TB, what string, ok func(*part) bool) {
	tb.Helper()
	late := time.NewTimer(pulsarbroker.Limit)
	defer late.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if o.any(ok) {
			return
		}
		select {
		case <-tick.C:
		case <-late.C:
			tb.Fatal(what)
		}
	}
}

func (o *Outbox) any(ok func(*part) bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.lanes {
		for _, p := range l.parts {
			if ok(p) {
				return true
			}
		}
	}
	return false
}

// Open is how many topics are open, opened or closed.
func (o *Outbox) Open() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.slots
}

// Lent is how many messages producers have that are open.
func (o *Outbox) Lent() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, l := range o.lanes {
		for _, p := range l.parts {
			if p.session != nil {
				n += p.queue.n + p.sent.n
			}
		}
	}
	return n
}
