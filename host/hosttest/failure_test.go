// SPDX-License-Identifier: Apache-2.0

package hosttest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// A wait that fails says what came instead and where every message is.
func TestFailedWaitTellsWhereMessagesAre(t *testing.T) {
	bubble(t, func(t *testing.T) {
		text := fails(t, func(tb testing.TB) {
			b := hosttest.NewBroker()
			h := host.New(b.Replace(), hosttest.Logger(t))
			in := h.Endpoint("in", host.Plugin{Name: "x"}, nil)
			host.Handle(in.Subscription("orders", host.Window(1, 0)), func(ctx context.Context, m *host.Message[[]byte]) error {
				if string(m.Value) == "two" {
					<-ctx.Done()
				}
				return nil
			}, host.Forward(in.To("shipped")), host.Timeout(48*time.Hour))
			hosttest.Start(tb, h, b)
			b.Lose("orders", 1)
			b.Deliver("orders", hosttest.Text("zero"), hosttest.Text("one"), hosttest.Text("two"), hosttest.Text("three"))
			b.WaitPublished(tb, "shipped", 2)
		})
		has(t, text, `hosttest: waited 24h0m0s for 2 messages published to "shipped": 1 message came`,
			"  the host is ready\n",
			`  "orders", read by 1 subscription: 4 messages`,
			`1 "zero": lost on the way on the test's command, and unsettled`,
			`2 "one": acked`, `3 "two": delivered, and there is no verdict yet`,
			`4 "three": queued; the host has not asked for it`,
			`"shipped", nobody reads it: 1 message`, `5 "one": queued, published by in`)
	})
}

func TestLimitsHoldOutsideOfBubbles(t *testing.T) {
	began := time.Now()
	text := fails(t, func(tb testing.TB) {
		hosttest.NewBroker(hosttest.WaitLimit(10*time.Millisecond)).WaitVerdicts(tb, "orders", 1)
	})
	has(t, text, `for 1 verdict on "orders": 0 verdicts came`, "no host was started on this broker with Start")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A host that ends fails waits at once, not at their limit.
func TestWaitEndsWithTheHost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		began := time.Now()
		text := fails(t, func(tb testing.TB) {
			b := hosttest.NewBroker()
			h := host.New(b.Replace())
			in := h.Endpoint("in", host.Plugin{Name: "x"}, nil)
			host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
				panic("a bug")
			}, host.OnPanic(host.FailFast))
			hosttest.Start(tb, h, b)
			b.Deliver("orders", hosttest.Text("one"))
			b.WaitPublished(tb, "shipped", 1)
		})
		has(t, text, "for 1 message published to \"shipped\", and the host has ended: 0 messages came", "handler panicked: a bug")
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}

// What goes round for ever ends the test, in a bubble too, where time would not
// pass.
func TestEndlessRoundsEnd(t *testing.T) {
	for name, register := range map[string]func(h *host.Host, in *host.Endpoint){
		"requeues": func(_ *host.Host, in *host.Endpoint) {
			host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
				return host.Retry(nil)
			}, host.Floor(0))
		},
		"publishes": func(h *host.Host, in *host.Endpoint) {
			out := host.To[[]byte](h, in.To("orders"))
			host.Handle(in.Subscription("orders"), func(ctx context.Context, m *host.Message[[]byte]) error {
				_, err := out.Publish(ctx, m.Value)
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				text := fails(t, func(tb testing.TB) {
					b := hosttest.NewBroker(hosttest.MessageLimit(100))
					h := host.New(b.Replace())
					register(h, h.Endpoint("in", host.Plugin{Name: "x"}, nil))
					s := hosttest.Start(tb, h, b)
					b.Deliver("orders", hosttest.Text("one"))
					s.Wait()
				})
				has(t, text, "the broker has made 100 deliveries or taken as many messages, its MessageLimit: something goes round")
			})
		})
	}
}

func TestStartFailureNamesTheFinding(t *testing.T) {
	text := fails(t, func(tb testing.TB) {
		h := host.New()
		b := hosttest.NewBroker()
		h.Endpoint("in", b.Plugin(), nil).Subscription("orders")
		hosttest.Start(tb, h, b)
	})
	has(t, text, "hosttest: the host did not start", "subscription orders of endpoint in: Handle: has no handler", "call host.Handle for it")
}

// A host that ended with an error fails the test that did not ask for it, and
// that test alone.
func TestErrorOfRunFailsTheTest(t *testing.T) {
	test := func(tb testing.TB, ask bool) {
		b := hosttest.NewBroker()
		h := host.New(b.Replace())
		host.Handle(h.Endpoint("in", host.Plugin{Name: "x"}, nil).Subscription("orders"), acks)
		s := hosttest.Start(tb, h, b)
		b.Break("orders", &core.Fault{Code: core.FaultDenied, Message: "no more"})
		if ask {
			var lost *host.EndpointError
			if err := s.Ended(); !errors.As(err, &lost) {
				tb.Errorf("got %v", err)
			}
			return
		}
		synctest.Wait()
	}
	bubble(t, func(t *testing.T) {
		text := fails(t, func(tb testing.TB) { test(tb, false) })
		has(t, text, "hosttest: the host ended with an error", "no more")
	})
	bubble(t, func(t *testing.T) { test(t, true) })
}

// A handler that does not look at its context is a failure with its name, not a
// test that hangs.
func TestHandlerThatHangsFailsTheStop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		hang := make(chan bool)
		text := fails(t, func(tb testing.TB) {
			b := hosttest.NewBroker()
			h := host.New(b.Replace())
			host.Handle(h.Endpoint("in", host.Plugin{Name: "x"}, nil).Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
				<-hang
				return nil
			})
			hosttest.Start(tb, h, b)
			b.Deliver("orders", hosttest.Text("one"))
			b.WaitDelivered(tb, "orders", 1)
			synctest.Wait()
		})
		has(t, text, "hosttest: the host did not stop within 24h0m0s and was aborted", "subscription orders of endpoint in: 1 handlers did not return",
			"host.WithDrainLimit bounds it", `1 "one": delivered, and there is no verdict yet`)
		close(hang)
	})
}

// A test that ends in the middle of everything fails with nothing: the host
// stops in order.
func TestStopInTheMiddle(t *testing.T) {
	both(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		h := host.New(b.Replace())
		register(h)
		hosttest.Start(t, h, b)
		for range 200 {
			b.Deliver("orders", hosttest.JSON(order{7}))
		}
	})
}

func TestCrashOfNothing(t *testing.T) {
	text := fails(t, func(tb testing.TB) { hosttest.NewBroker().Crash(tb, "in") })
	has(t, text, `crash endpoint "in": it has no plugin on this broker; those that have are none`)
}

func TestMisusePanics(t *testing.T) {
	b := hosttest.NewBroker()
	for name, f := range map[string]func(){
		"Lose: 0 is no number of times":               func() { b.Lose("x", 0) },
		"FailVerdicts: -2 is no number":               func() { b.FailVerdicts("x", -2) },
		"FailPublishes: 9 is no way to fail":          func() { b.FailPublishes("x", 9, 1) },
		"WaitLimit: 0s is no limit":                   func() { hosttest.WaitLimit(0) },
		"MessageLimit: 0 is no limit":                 func() { hosttest.MessageLimit(0) },
		"Break without a cause":                       func() { b.Break("x", nil) },
		"message of chan int: json: unsupported type": func() { hosttest.JSON(make(chan int)) },
		"source x: ": func() { b.Source("x", core.Capabilities{Requeue: core.RequeueNow}) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, name) || !strings.HasPrefix(text, "hosttest: ") {
					t.Errorf("got %q, want %q", text, name)
				}
			}()
			f()
		}()
	}
}
