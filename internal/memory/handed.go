// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"

	"github.com/longshore-go/longshore/internal/memory/wire"
)

// earlyReceipt is the receipt of a message that is delivered and not handed on to
// the host yet. It waits for that: a host that has all receipts and was told
// that its subscriptions have caught up would stop. A subscription that has no
// credit for it is not waited for: it has nothing handed on until the host asks
// for more, and a host does not stop over one that it withholds credit from.
type earlyReceipt struct {
	p      *peer
	item   wire.Item
	number uint64 // of the subscription's deliveries
}

// answer sends the receipts of stored messages, early ones later. The broker is
// Patient, and its plugins tell how far they have handed on.
func (b *Broker) answer(p *peer, f *wire.Frame, stored []*record) {
	now := f.Items[:0]
	for i, r := range stored {
		if r != nil && r.to != nil && r.to.owes(r.number) {
			r.to.early = append(r.to.early, earlyReceipt{p, f.Items[i], r.number})
			continue
		}
		now = append(now, f.Items[i])
	}
	if f.Items = now; len(now) > 0 {
		p.send(f)
	}
}

// owes reports whether a delivery is still to be handed on, and will be.
func (c *consumer) owes(number uint64) bool {
	return !c.deaf && number > c.handedOn && number <= c.maxCount
}

// handed notes how far deliveries were handed on.
func (c *consumer) handed(n uint64) {
	c.handedOn = n
	c.answerEarly()
}

// answerEarly sends the receipts that need not wait any more.
func (c *consumer) answerEarly() {
	c.early = slices.DeleteFunc(c.early, func(e earlyReceipt) bool {
		if c.owes(e.number) {
			return false
		}
		e.p.send(&wire.Frame{Kind: wire.Receipts, Items: []wire.Item{e.item}})
		return true
	})
}
