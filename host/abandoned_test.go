// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/pluginapi"
)

// What a stop cuts off is listed whole: handlers, waiting copies, settlements
// and hooks by subscription, and publishes by endpoint.
func TestAbandonedListIsComplete(t *testing.T) {
	synctest.Test(t, testAbandonedListIsComplete)
}

func testAbandonedListIsComplete(t *testing.T) {
	q, far := newQueues(), newQueues()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	far.published = func(pluginapi.Outgoing) *pluginapi.Receipt {
		<-release
		return nil
	}
	s := newService(host.WithDrainLimit(300 * time.Millisecond))
	in, out := attach(s.Host, "in", q), attach(s.Host, "out", far)
	p := host.To[[]byte](s.Host, out.To("x"))
	entered := make(chan string, 8)
	enter := func(name string) { entered <- name }
	host.Handle(in.Subscription("deaf"), func(context.Context, *host.Message[[]byte]) error {
		enter("deaf")
		<-release
		return nil
	})
	host.Handle(in.Subscription("cancelled"), func(ctx context.Context, _ *host.Message[[]byte]) error {
		enter("cancelled")
		<-ctx.Done()
		return ctx.Err()
	})
	host.Handle(in.Subscription("waiting"), func(_ context.Context, m *host.Message[[]byte]) error {
		defer enter("waiting")
		return host.RetryAfter(time.Hour, nil)
	})
	host.Handle(in.Subscription("dead"), func(context.Context, *host.Message[[]byte]) error {
		defer enter("dead")
		return host.DeadLetter(nil)
	}, host.DeadLetterTo(out.To("graves")))
	host.Handle(in.Subscription("hooked"), acks, host.AfterSettle(func(context.Context, host.Settled) {
		enter("hooked")
		<-release
	}))
	s.serve(t)
	for _, name := range []string{"deaf", "cancelled", "waiting", "dead", "hooked"} {
		q.put(name, name)
	}
	for range 5 {
		receive(t, entered)
	}
	for i := range 3 {
		if _, err := p.PublishAsync(t.Context(), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	eventually(t, "the copy waits", func() bool { return s.Health().Waiting == 1 })
	eventually(t, "the publishes are under way", func() bool { return s.Health().Endpoints[1].Published.Missing == 4 })
	s.stop()
	err := s.result(t)
	var e *host.AbandonedError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *AbandonedError", err)
	}
	want := []host.Abandoned{
		{Endpoint: "in", Subscription: "cancelled", Cancelled: 1, Messages: []string{"cancelled at 1"}},
		{Endpoint: "in", Subscription: "dead", Settlements: 1},
		{Endpoint: "in", Subscription: "deaf", Handlers: 1, Messages: []string{"deaf at 1"}},
		{Endpoint: "in", Subscription: "hooked", Hooks: 1},
		{Endpoint: "in", Subscription: "waiting", Copies: 1},
		{Endpoint: "out", Publishes: 3},
	}
	if d := cmp.Diff(want, e.Subscriptions); d != "" {
		t.Errorf("listed (-want +got):\n%s", d)
	}
	for _, part := range []string{
		"subscription deaf of endpoint in: 1 handlers did not return (deaf at", "; endpoint out: 3 publishes have no receipt; let handlers return when their context ends; raise the drain limit above the longest delay of copies that others read, or keep copies in a journal",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}

// A hook that publishes during a stop is not refused.
func TestHooksPublishDuringAStop(t *testing.T) {
	q := newQueues()
	q.put("orders", "one", "two")
	s := newService()
	in := attach(s.Host, "in", q)
	p := host.To[[]byte](s.Host, in.To("settled"))
	began, release := make(chan struct{}, 2), make(chan struct{})
	failed := make(chan error, 2)
	host.Handle(in.Subscription("orders"), acks, host.AfterSettle(func(ctx context.Context, x host.Settled) {
		began <- struct{}{}
		<-release
		_, err := p.Publish(ctx, x.Message.Payload)
		failed <- err
	}))
	s.serve(t)
	receive(t, began)
	eventually(t, "both are settled", func() bool { return len(q.verdicts("orders")) == 2 })
	s.stop()
	eventually(t, "the stop has begun", func() bool { return s.Health().State == host.StateStopping })
	eventually(t, "intake has ended", func() bool {
		return len(s.log.lines("subscription ended")) > 0
	})
	close(release)
	if err := s.result(t); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := receive(t, failed); err != nil {
			t.Errorf("the hook could not publish: %v", err)
		}
	}
	if got := q.took("settled"); len(got) != 2 {
		t.Errorf("published %v", got)
	}
}

// The advice fits what was cut off.
func TestAbandonedErrorsAdvise(t *testing.T) {
	for name, c := range map[string]struct {
		left host.Abandoned
		want string
	}{
		"deaf":      {host.Abandoned{Handlers: 1}, "; let handlers return when their context ends"},
		"cancelled": {host.Abandoned{Cancelled: 1}, "; raise the drain limit"},
		"both":      {host.Abandoned{Handlers: 1, Hooks: 1}, "; let handlers return when their context ends; raise the drain limit"},
		"copies":    {host.Abandoned{Copies: 1}, "lost; raise the drain limit above the longest delay of copies that others read, or keep copies in a journal"},
	} {
		t.Run(name, func(t *testing.T) {
			c.left.Endpoint = "in"
			if got := (&host.AbandonedError{Subscriptions: []host.Abandoned{c.left}}).Error(); !strings.HasSuffix(got, c.want) || strings.Count(got, ";") != strings.Count(c.want, ";") {
				t.Errorf("got %q, want an end of %q", got, c.want)
			}
		})
	}
}
