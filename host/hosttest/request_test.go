// SPDX-License-Identifier: Apache-2.0

package hosttest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
	"github.com/longshore-go/longshore/pluginapi"
)

// asks returns a host that answers at quotes, and what asks it.
func asks(t *testing.T, b *hosttest.Broker) (*host.Host, func(name string, n int) (int, error)) {
	h := host.New(b.Replace(), hosttest.Logger(t))
	shop := h.Endpoint("shop", host.Plugin{Name: "nats"}, nil)
	host.HandleReply(shop.Subscription("quotes"), func(_ context.Context, m *host.Message[int]) (int, error) {
		if m.Value == 0 && m.Attempt() < 2 {
			return 0, errors.New("again")
		}
		return 2 * m.Value, nil
	}, host.MaxAttempts(2), host.Backoff(host.Constant(time.Second).Jitter(0)))
	host.Handle(shop.Subscription("silent"), acks)
	return h, func(name string, n int) (int, error) {
		return host.Request[int, int](t.Context(), h, shop.To(name), n)
	}
}

// Requests are answered by the service's own subscriptions.
func TestRequestsReachSubscriptions(t *testing.T) {
	both(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		h, ask := asks(t, b)
		s := hosttest.Start(t, h)
		for n := range 3 {
			if got, err := ask("quotes", n); got != 2*n || err != nil {
				t.Errorf("%d: %d, %v", n, got, err)
			}
		}
		s.Wait()
		asked := b.Published("quotes")
		if len(asked) != 4 { // and a copy
			t.Fatalf("%d requests", len(asked))
		}
		to := asked[0].Header("reply-to")
		replies := b.Published(to)
		if to == "" || len(replies) != 1 || replies[0].Purpose != pluginapi.PurposeReply || replies[0].Header("correlation-id") != asked[0].Header("correlation-id") {
			t.Errorf("reply-to %q: %v", to, replies)
		}
	})
}

// A request that is not answered fails, by what a test asks for.
func TestRequestsFail(t *testing.T) {
	for name, tt := range map[string]struct {
		to   string
		do   func(b *hosttest.Broker)
		took time.Duration
		code core.FaultCode
		late bool
		sent int
		say  string
	}{
		"nobody":                   {to: "nowhere", code: core.FaultNotFound, say: "Broker.Respond"},
		"a handler without answer": {to: "silent", took: 30 * time.Second, late: true, sent: 1},
		"unavailable": {to: "quotes", code: core.FaultUnavailable, do: func(b *hosttest.Broker) {
			b.FailPublishes("quotes", hosttest.Unavailable, 1)
		}},
		"refused": {to: "quotes", code: core.FaultDenied, do: func(b *hosttest.Broker) {
			b.FailPublishes("quotes", hosttest.Refused, 1)
		}},
		"unanswered": {to: "quotes", took: 30 * time.Second, late: true, do: func(b *hosttest.Broker) {
			b.FailPublishes("quotes", hosttest.Unanswered, 1)
		}},
		"stored, unanswered": {to: "quotes", took: 30 * time.Second, late: true, sent: 1, do: func(b *hosttest.Broker) {
			b.FailPublishes("quotes", hosttest.StoredUnanswered, 1)
		}},
		"lost": {to: "quotes", took: 30 * time.Second, late: true, sent: 1, do: func(b *hosttest.Broker) { b.Lose("quotes", 1) }},
		"lost before Respond": {to: "quotes", took: 30 * time.Second, late: true, do: func(b *hosttest.Broker) {
			b.Respond("quotes", func(hosttest.Message) hosttest.Message { return hosttest.JSON(7) })
			b.Lose("quotes", 1)
		}},
		"down": {to: "quotes", took: time.Second, code: core.FaultUnavailable, do: func(b *hosttest.Broker) {
			b.FailPublishes("quotes", hosttest.Unanswered, 1)
			time.AfterFunc(time.Second, b.Down)
			time.AfterFunc(2*time.Second, b.Up)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := hosttest.NewBroker()
				h, ask := asks(t, b)
				s := hosttest.Start(t, h)
				if tt.do != nil {
					tt.do(b)
				}
				began := time.Now()
				_, err := ask(tt.to, 1)
				var f *core.Fault
				if got := errors.As(err, &f) && f.Code == tt.code; got == tt.late || errors.Is(err, context.DeadlineExceeded) != tt.late {
					t.Errorf("got %v", err)
				}
				if took := time.Since(began).Round(time.Millisecond); took != tt.took {
					t.Errorf("it took %v", took)
				}
				if n := len(b.Published(tt.to)); n != tt.sent {
					t.Errorf("%d arrived", n)
				}
				if tt.say != "" {
					has(t, err.Error(), tt.say)
				}
				if name == "down" {
					time.Sleep(2 * time.Second)
					s.Ready()
				}
				if name == "lost" { // it comes back with the next connection alone
					return
				}
				if name != "nobody" && tt.to == "quotes" {
					if _, err := ask(tt.to, 1); err != nil {
						t.Errorf("the next one: %v", err)
					}
				}
				s.Wait()
			})
		})
	}
}

// A function of Respond that is slower than its request does not outlive the
// test's bubble.
func TestSlowResponders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		h, ask := asks(t, b)
		b.Respond("slow", func(hosttest.Message) hosttest.Message {
			time.Sleep(time.Hour)
			return hosttest.JSON(1)
		})
		hosttest.Start(t, h)
		if _, err := ask("slow", 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// A message that comes back for ever ends a wait after 1,000 deliveries.
func TestReturnLimit(t *testing.T) {
	for name, source := range map[string]core.Capabilities{"requeued": hosttest.Queue(), "copied": hosttest.Stream()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := hosttest.NewBroker()
				b.Source("orders", source)
				h := host.New(b.Replace())
				in := h.Endpoint("in", host.Plugin{Name: "x"}, nil)
				runs := 0
				host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
					runs++
					if name == "copied" {
						return errors.New("never")
					}
					return nil
				}, host.Forward(in.To("out")), host.MaxAttempts(10_000))
				b.FailPublishes("out", hosttest.Unavailable, hosttest.Always)
				text := fails(t, func(tb testing.TB) {
					s := hosttest.Start(tb, h)
					b.Deliver("orders", hosttest.Text("x"))
					s.Wait()
				})
				has(t, text, `message`, `of "orders", "x", has come back 1000 times, the broker's ReturnLimit: it goes round`)
				if runs < 990 || runs > 1001 {
					t.Errorf("%d runs", runs)
				}
			})
		})
	}
}
