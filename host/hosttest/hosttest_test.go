// SPDX-License-Identifier: Apache-2.0

package hosttest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
	"github.com/longshore-go/longshore/pluginapi"
)

type order struct {
	ID int `json:"id"`
}

// register is a service's own wiring.
func register(h *host.Host) {
	in := h.Endpoint("in", host.Plugin{Name: "mqtt", Path: "/nowhere"}, map[string]any{"address": "nowhere:1883"})
	out := h.Endpoint("out", host.Plugin{Name: "pulsar", Stdio: &host.Stdio{}}, map[string]any{"url": "nowhere"})
	orders := in.Subscription("orders", host.Options(map[string]any{"qos": 1}))
	host.Handle(orders, func(_ context.Context, m *host.Message[order]) error {
		switch m.Value.ID {
		case 0:
			return errors.New("no number")
		case 13:
			return host.Drop(errors.New("unlucky"))
		}
		return nil
	}, host.MaxAttempts(3), host.Backoff(host.Constant(time.Hour).Jitter(0)), host.DeadLetterTo(out.To("dead")), host.Forward(out.To("shipped")))
}

// both runs a test in a bubble and outside of one.
func both(t *testing.T, test func(t *testing.T)) {
	t.Run("bubble", func(t *testing.T) { synctest.Test(t, test) })
	t.Run("real", test)
}

func TestServiceRunsItsOwnWiring(t *testing.T) {
	both(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		h := host.New(b.Replace(), hosttest.Logger(t))
		register(h)
		s := hosttest.Start(t, h, b)
		ids := b.Deliver("orders", hosttest.JSON(order{7}).With("tenant", "acme"))
		if diff := cmp.Diff([]uint64{1}, ids); diff != "" {
			t.Error(diff)
		}
		m := b.WaitPublished(t, "shipped", 1)[0]
		if m.Text() != `{"id":7}` || m.Header("Tenant") != "acme" || m.Endpoint != "out" || m.Purpose != pluginapi.PurposeApplication {
			t.Errorf("shipped %+v", m)
		}
		s.Wait()
		b.Deliver("orders", hosttest.JSON(order{13}))
		s.Wait()
		if got, want := fmt.Sprint(b.Verdicts("orders")), "[1 ack 3 reject]"; got != want {
			t.Errorf("verdicts %v, want %v", got, want)
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestTimeIsTheBubbles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // S-GEN-119
		b := hosttest.NewBroker()
		h := host.New(b.Replace())
		register(h)
		hosttest.Start(t, h, b)
		began := time.Now()
		b.Deliver("orders", hosttest.JSON(order{}))
		dead := b.WaitPublished(t, "dead", 1)[0]
		if took := time.Since(began).Round(time.Second); took != 2*time.Hour {
			t.Errorf("it took %v", took)
		}
		if dead.Header("x-longshore-attempts") != "3" || dead.Purpose != pluginapi.PurposeDeadLetter {
			t.Errorf("dead letter %v", dead.Headers)
		}
		if copies := b.Published("orders"); len(copies) != 2 || copies[1].Header("x-ruststream-retry-count") != "2" {
			t.Errorf("copies %v", copies)
		}
	})
}

func TestHandledReturnsTheVerdict(t *testing.T) {
	both(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		b.Source("orders", hosttest.DelayQueue())
		h := host.New(b.Replace())
		in := h.Endpoint("in", host.Plugin{Name: "x"}, nil)
		host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
			if m.Header("again") != "" {
				return host.RetryAfter(time.Minute, nil)
			}
			return nil
		})
		hosttest.Start(t, h, b)
		if v := b.Handled(t, "orders", hosttest.Text("x").With("again", "yes")); v.String() != "1 requeue after 1m0s" || v.Kind != core.VerdictRequeue {
			t.Errorf("got %v", v)
		}
		if v := b.Handled(t, "orders", hosttest.Text("y")); v.String() != "2 ack" {
			t.Errorf("got %v", v)
		}
	})
}

// CatchUp and End make Run return by itself; a requeue that waits at the broker
// is waited for.
func TestHostEndsByItself(t *testing.T) {
	for name, end := range map[string]func(b *hosttest.Broker){
		"catch up":      func(b *hosttest.Broker) { b.CatchUp() },
		"catch up each": func(b *hosttest.Broker) { b.CatchUp("a", "b") },
		"end":           func(b *hosttest.Broker) { b.End("a", "b") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := hosttest.NewBroker()
				h := host.New()
				in := h.Endpoint("in", b.Plugin(hosttest.DelayQueue()), nil)
				tries := 0
				host.Handle(in.Subscription("a"), func(context.Context, *host.Message[[]byte]) error {
					if tries++; tries < 3 {
						return host.RetryAfter(time.Hour, nil)
					}
					return nil
				})
				host.Handle(in.Subscription("b"), acks)
				b.Deliver("a", hosttest.Text("x"))
				end(b)
				if err := hosttest.Start(t, h, b).Ended(); err != nil {
					t.Error(err)
				}
				if got, want := fmt.Sprint(b.Verdicts("a")), "[1 requeue after 1h0m0s 1 requeue after 1h0m0s, attempt 2 1 ack, attempt 3]"; got != want {
					t.Errorf("got %v, want %v", got, want)
				}
			})
		})
	}
}

func TestSourcesAndDestinationsAreSwitched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		b.Source("log", hosttest.Log())
		b.Source("stream", hosttest.Stream())
		b.Source("mixed", hosttest.CountingQueue(), hosttest.Stream())
		small := hosttest.Stored()
		small.MaxBytes = 3
		b.Destination("out", small)
		h := host.New(b.Replace())
		in := h.Endpoint("in", host.Plugin{Name: "x"}, nil)
		host.Handle(in.Subscription("log"), acks, host.RetryTo(in.To("again")))
		host.Handle(in.Subscription("stream"), acks)
		host.Handle(in.Subscription("mixed"), acks)
		out := host.To[[]byte](h, in.To("out"))
		s := hosttest.Start(t, h, b)
		b.Deliver("log", hosttest.Text("1"), hosttest.Text("2"))
		b.Deliver("stream", hosttest.Text("3"))
		b.Deliver("mixed", hosttest.Text("4"), hosttest.Message{Payload: []byte("5"), Profile: 1})
		s.Wait()
		synctest.Wait()
		for name, want := range map[string]string{"log": "[1 ack 2 ack]", "stream": "[3 release]", "mixed": "[4 ack 5 release]"} {
			if got := fmt.Sprint(b.Verdicts(name)); got != want {
				t.Errorf("%s: got %v, want %v", name, got, want)
			}
		}
		var wrong *host.PublishError
		if _, err := out.Publish(t.Context(), []byte("long")); !errors.As(err, &wrong) {
			t.Errorf("got %v", err)
		}
		tables, err := h.Explain(t.Context())
		if err != nil || len(tables) != 3 {
			t.Errorf("%d tables, %v", len(tables), err)
		}
	})
}

func TestReplaceEachKeepsQueuesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, right := hosttest.NewBroker(), hosttest.NewBroker()
		h := host.New(hosttest.ReplaceEach(map[string]*hosttest.Broker{"left": left, "right": right}))
		from := h.Endpoint("left", host.Plugin{Name: "x"}, nil)
		to := h.Endpoint("right", host.Plugin{Name: "y"}, nil)
		host.Handle[[]byte](from.Subscription("orders"), nil, host.Forward(to.To("orders")))
		s := hosttest.Start(t, h, left, right)
		left.Deliver("orders", hosttest.Text("x"))
		right.WaitPublished(t, "orders", 1)
		s.Wait()
		if n := len(left.Published("orders")); n != 0 {
			t.Errorf("%d came back", n)
		}
	})
}

func TestTopics(t *testing.T) {
	for _, tt := range []struct {
		filter, name string
		want         bool
	}{
		{"a/+/c", "a/b/c", true},
		{"a/+/c", "a/b/d", false},
		{"a/+", "a", false},
		{"a/+", "a/", true},
		{"a/#", "a", true},
		{"a/#", "a/b/c", true},
		{"a/#", "ab", false},
		{"#", "a/b", true},
		{"#", "$SYS/x", false},
		{"+/x", "$SYS/x", false},
		{"$SYS/#", "$SYS/x", true},
		{"$share/g/a/+", "a/b", true},
		{"a", "a/b", false},
		{"a/b", "a", false},
		{"a/b", "a/b", true},
	} {
		if got := hosttest.Topics(tt.filter, tt.name); got != tt.want {
			t.Errorf("%s matches %s: %v", tt.filter, tt.name, got)
		}
	}
}

// A filter reads what is published to a name that it matches, and the verdicts
// on it are the subscription's.
func TestMatching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker(hosttest.Matching(hosttest.Topics))
		h := host.New(b.Replace())
		in := h.Endpoint("in", host.Plugin{Name: "mqtt"}, nil)
		var names []string
		host.Handle(in.Subscription("shop/+/orders"), func(_ context.Context, m *host.Message[[]byte]) error {
			names = append(names, m.Name())
			return nil
		})
		out := host.To[[]byte](h, in.To("shop/2/orders"))
		s := hosttest.Start(t, h, b)
		m := hosttest.Text("x")
		m.Name = "shop/1/orders"
		b.Deliver("shop/+/orders", m)
		s.Wait()
		if _, err := out.Publish(t.Context(), []byte("y")); err != nil {
			t.Error(err)
		}
		s.Wait()
		if diff := cmp.Diff([]string{"shop/1/orders", "shop/2/orders"}, names); diff != "" {
			t.Error(diff)
		}
		if got := fmt.Sprint(b.Verdicts("shop/+/orders")); got != "[1 ack 2 ack]" {
			t.Error(got)
		}
	})
}

func TestServeNeedsNoTest(t *testing.T) {
	both(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		h := host.New(b.Replace())
		out := host.To[order](h, h.Endpoint("out", host.Plugin{Name: "x"}, nil).To("shipped"))
		stop, err := hosttest.Serve(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Publish(t.Context(), order{1}); err != nil {
			t.Error(err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(b.Published("shipped")); got != `["{\"id\":1}"]` {
			t.Error(got)
		}
	})
}

func TestServeSaysWhyItDoesNot(t *testing.T) {
	h := host.New()
	h.Endpoint("in", hosttest.NewBroker().Plugin(), nil).Subscription("orders")
	_, err := hosttest.Serve(h)
	var refused *host.StartError
	if !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}

// A copy that waited in the host is handled before a host that has caught up
// ends, whatever endpoint it was published on.
func TestHostThatHasCaughtUpWaitsForItsCopies(t *testing.T) {
	for range 50 {
		b := hosttest.NewBroker()
		h := host.New(b.Replace(), host.WithLogger(slog.New(slog.DiscardHandler)))
		in := h.Endpoint("in", host.Plugin{Name: "x"}, nil)
		out := h.Endpoint("out", host.Plugin{Name: "x"}, nil)
		var attempts []uint64
		host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
			if attempts = append(attempts, m.Attempt()); len(attempts) < 3 {
				return host.RetryAfter(time.Millisecond, nil)
			}
			return nil
		}, host.RetryTo(out.To("orders")))
		b.Deliver("orders", hosttest.Text("x"))
		b.CatchUp()
		if err := h.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]uint64{1, 2, 3}, attempts); diff != "" {
			t.Fatalf("attempts (-want +got):\n%s", diff)
		}
	}
}

// The same holds for what one subscription of the host sends to another one.
func TestHostThatHasCaughtUpWaitsForItsDeadLetters(t *testing.T) {
	for range 50 {
		b := hosttest.NewBroker()
		h := host.New(b.Replace(), host.WithLogger(slog.New(slog.DiscardHandler)))
		in := h.Endpoint("in", host.Plugin{Name: "x"}, nil)
		host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
			return errors.New("no")
		}, host.MaxAttempts(2), host.DeadLetterTo(in.To("dead")))
		dead := 0
		host.Handle(in.Subscription("dead"), func(context.Context, *host.Message[[]byte]) error {
			dead++
			return nil
		})
		b.Deliver("orders", hosttest.Text("x"))
		b.CatchUp()
		if err := h.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if dead != 1 {
			t.Fatalf("%d dead letters handled\n%s", dead, b.Report())
		}
	}
}
