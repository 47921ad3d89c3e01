// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"testing"
	"time"

	"github.com/longshore-go/longshore/pluginapi"
)

// ReceiptFor is the receipt of a message that the library has answered with an error.
func ReceiptFor(err error) pluginapi.Receipt {
	return (&producer{lane: &lane{}}).receipt(&entry{name: "t"}, nil, err)
}

// AwaitDown waits until a producer reconnects.
func (o *Outbox) AwaitDown(tb testing.TB) {
	tb.Helper()
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		o.mu.Lock()
		for p := range o.producers {
			if p.down > 0 {
				o.mu.Unlock()
				return
			}
		}
		o.mu.Unlock()
		select {
		case <-tick.C:
		case <-late.C:
			tb.Fatal("no producer reconnects")
		}
	}
}

// Open is how many producers are open, made or closed.
func (o *Outbox) Open() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.slots
}

// Lent is how many messages the library has.
func (o *Outbox) Lent() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for p := range o.producers {
		n += p.lent
	}
	return n
}
