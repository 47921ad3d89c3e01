// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/link"
)

// slowly returns a cancel that gives everybody time to see what it did.
func slowly(cancel context.CancelFunc) context.CancelFunc {
	return func() {
		cancel()
		time.Sleep(time.Second)
	}
}

// A generation that is let go ends its stream: that is no breach of the plugin's,
// whoever sees it first.
func TestDetachIsNoBreach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPost(t, OutboxOptions{}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		s, err := b.now.link.Publish(ctx)
		if err != nil {
			t.Fatal(err)
		}
		b.gen++
		b.box.Attach(s, b.gen, slowly(cancel))
		b.box.Detach(context.Canceled)
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.broken) > 0 {
			t.Errorf("told of %v", b.broken)
		}
	})
}

// Likewise of a subscription.
func TestDetachOfALaneIsNoBreach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, func(*Delivery) Said { return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}} })
		synctest.Wait()
		b.lane.mu.Lock()
		g := b.lane.now
		b.lane.mu.Unlock()
		g.a.Cancel = slowly(g.a.Cancel)
		b.lane.Detach(&link.LostError{})
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.broken) > 0 {
			t.Errorf("told of %v", b.broken)
		}
	})
}
