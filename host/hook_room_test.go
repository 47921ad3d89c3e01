// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/longshore-go/longshore/host"
)

// While 1024 calls of hooks wait nothing more is begun.
func TestSlowHooksHoldUpTheSubscription(t *testing.T) {
	in := newQueues()
	s := newService()
	release := make(chan struct{})
	var told tale
	host.Handle(attach(s.Host, "in", in).Subscription("orders", host.Window(64, 0)), does,
		host.AfterSettle(func(ctx context.Context, x host.Settled) {
			<-release
			told.settled(ctx, x)
		}))
	s.serve(t)
	const all = 3000
	for i := range all {
		in.put("orders", fmt.Sprint(i))
	}
	// One is being told of, 1024 wait, and what had begun by then is within the
	// window.
	eventually(t, "nothing more is begun", func() bool { return len(in.verdicts("orders")) >= 1025 })
	if got := len(in.verdicts("orders")); got > 1025+64 {
		t.Errorf("%d were settled while their hooks wait, want at most %d", got, 1025+64)
	}
	close(release)
	eventually(t, "all are told", func() bool { return len(told.all()) == all })
}

// Health counts the calls that wait or run.
func TestHealthCountsHooks(t *testing.T) {
	in := newQueues()
	s := newService()
	release := make(chan struct{})
	host.Handle(attach(s.Host, "in", in).Subscription("orders"), acks,
		host.AfterSettle(func(context.Context, host.Settled) { <-release }))
	hooks := func() int { return s.Health().Endpoints[0].Subscriptions[0].Hooks }
	s.serve(t)
	in.put("orders", "1", "2", "3")
	eventually(t, "one runs and two wait", func() bool { return hooks() == 3 })
	close(release)
	eventually(t, "none is left", func() bool { return hooks() == 0 })
}
