// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// A handler that takes several times the lease of its delivery is not run twice,
// nor is that of the delivery that waits behind it.
func TestLongHandlerOnALeasedSource(t *testing.T) {
	synctest.Test(t, testLongHandlerOnALeasedSource)
}

func testLongHandlerOnALeasedSource(t *testing.T) {
	const hold = 500 * time.Millisecond
	b := newExchange(t, settings.Settings{}.With("orders", core.Capabilities{
		Ack: core.AckSingle, Requeue: core.RequeueDelayed, Counts: core.CountNative, Address: "own",
		Unsettled: core.UnsettledOnTimeout, MaxHold: hold, Extend: true, Order: core.OrderTotal,
	}))
	var runs atomic.Int64
	host.Handle(b.mem.Subscription("orders"), func(ctx context.Context, _ *host.Message[[]byte]) error {
		runs.Add(1)
		timer := time.NewTimer(4 * hold)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, host.MaxAttempts(3), host.DeadLetterTo(b.mem.To("graves")))
	b.Publish("orders", memory.Text("one"), memory.Text("two"))
	b.serve(t)
	if err := b.WaitSettled(b.ctx, "orders", 2); err != nil {
		t.Error(err)
	}
	b.stop()
	if err := b.result(t); err != nil {
		t.Error(err)
	}
	if n := runs.Load(); n != 2 {
		t.Errorf("%d runs of the handler, want one for each message", n)
	}
	if a := b.Account("orders"); a.Deliveries != 2 || a.Acked != 2 {
		t.Errorf("account of the broker %+v, want 2 deliveries, acked", a)
	}
}
