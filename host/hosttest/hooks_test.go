// SPDX-License-Identifier: Apache-2.0

package hosttest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// What handlers and hooks wrote is there after Wait, and may be read without a
// lock.
func TestWaitWaitsForHooks(t *testing.T) {
	both(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		h := host.New(b.Replace(), hosttest.Logger(t))
		handled, settled, failed := 0, 0, 0
		host.Handle(h.Endpoint("in", host.Plugin{Name: "x"}, nil).Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
			handled++
			if len(m.Value) == 0 {
				return host.Drop(errors.New("it is empty"))
			}
			return nil
		}, host.AfterSettle(func(context.Context, host.Settled) {
			time.Sleep(10 * time.Millisecond)
			settled++
		}), host.OnFinalFailure(func(context.Context, host.Failure) {
			time.Sleep(10 * time.Millisecond)
			failed++
		}))
		s := hosttest.Start(t, h, b)
		for round := 1; round < 4; round++ {
			b.Deliver("orders", hosttest.Text("x"), hosttest.Text(""))
			s.Wait()
			if handled != 2*round || settled != 2*round || failed != round {
				t.Fatalf("round %d: %d handled, %d settled, %d failed", round, handled, settled, failed)
			}
		}
	})
}
