// SPDX-License-Identifier: Apache-2.0

package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
	"github.com/longshore-go/longshore/host/middleware"
)

type raw = host.Message[[]byte]

// Middleware around Recover sees a panic as an error, and the policy for panics
// still holds.
func TestRecover(t *testing.T) {
	var told book
	bubble(t, func(s *service) {
		host.Handle(s.in.Subscription("orders"), func(context.Context, *raw) error { panic("ouch") },
			host.OnPanic(host.AsDrop), host.Middleware(told.notes, middleware.Recover()))
	}, func(t *testing.T, s *service) {
		s.broker.Deliver("orders", hosttest.Text("one"))
		s.Wait()
		got(t, &told, "[one: handler panicked: ouch]")
		if vs := fmt.Sprint(s.broker.Verdicts("orders")); vs != "[1 reject]" {
			t.Errorf("got %s, want what OnPanic says", vs)
		}
	})
}

func TestTimeout(t *testing.T) {
	var told book
	bubble(t, func(s *service) {
		host.Handle(s.in.Subscription("orders"), func(ctx context.Context, m *raw) error {
			began := time.Now()
			select {
			case <-ctx.Done():
			case <-time.NewTimer(time.Hour).C:
			}
			told.add("%v %v", time.Since(began), context.Cause(ctx))
			return nil
		}, host.Middleware(middleware.Timeout(3*time.Second)))
	}, func(t *testing.T, s *service) {
		s.broker.Deliver("orders", hosttest.Text("one"))
		s.Wait()
		got(t, &told, "[3s context deadline exceeded]")
	})
}

// Several subscriptions share one limiter, and a limit that cannot be waited for is
// a retry.
func TestRateLimit(t *testing.T) {
	var told book
	var began time.Time
	bubble(t, func(s *service) {
		limit := middleware.RateLimit(rate.NewLimiter(1, 1))
		for _, name := range []string{"a", "b"} {
			host.Handle(s.in.Subscription(name), func(_ context.Context, m *raw) error {
				told.add("%v", time.Since(began))
				return nil
			}, host.Middleware(limit))
		}
	}, func(t *testing.T, s *service) {
		began = time.Now()
		s.broker.Deliver("a", hosttest.Text("1"), hosttest.Text("2"))
		s.broker.Deliver("b", hosttest.Text("3"))
		s.Wait()
		got(t, &told, "[0s 1s 2s]")
	})

	t.Run("it cannot be waited for", func(t *testing.T) {
		bubble(t, func(s *service) {
			host.Handle(s.in.Subscription("orders"), func(context.Context, *raw) error { return nil },
				host.MaxAttempts(1), host.Middleware(middleware.RateLimit(never{})))
		}, func(t *testing.T, s *service) {
			s.broker.Deliver("orders", hosttest.Text("one"))
			s.Wait()
			if vs := fmt.Sprint(s.broker.Verdicts("orders")); vs != "[1 reject]" {
				t.Errorf("got %s, want a failed attempt", vs)
			}
		})
	})
}

// never lets nothing through.
type never struct{}

func (never) Wait(context.Context) error { return errors.New("full") }

// The id goes from a message over the handler's context to what it publishes.
func TestCorrelationID(t *testing.T) {
	var told book
	bubble(t, func(s *service) {
		out := host.To[string](s.host, s.in.To("out"), host.PublishMiddleware(middleware.PublishCorrelationID()))
		host.Handle(s.in.Subscription("orders"), func(ctx context.Context, m *raw) error {
			told.add("%d", len(middleware.CorrelationIDOf(ctx)))
			if _, err := out.Publish(ctx, "x"); err != nil {
				return err
			}
			if _, err := out.Publish(ctx, "y", host.WithHeader("Correlation-ID", "own")); err != nil {
				return err
			}
			_, err := out.Publish(context.WithoutCancel(context.Background()), "z")
			return err
		}, host.Middleware(middleware.CorrelationID()))
	}, func(t *testing.T, s *service) {
		s.broker.Deliver("orders", hosttest.Text("one").With("correlation-id", "c1"))
		s.broker.Deliver("orders", hosttest.Text("two"))
		s.Wait()
		got(t, &told, "[2 26]")
		ms := s.broker.Published("out")
		if len(ms) != 6 {
			t.Fatalf("%d were published, want 6", len(ms))
		}
		var ids []string
		for _, m := range ms {
			ids = append(ids, m.Header("correlation-id"))
		}
		if ids[0] != "c1" || ids[1] != "own" || ids[2] != "" || len(ids[3]) != 26 || ids[4] != "own" || ids[5] != "" {
			t.Errorf("got ids %q", ids)
		}
	})
}

func TestPublishing(t *testing.T) {
	var told book
	var began time.Time
	limit := rate.NewLimiter(1, 1)
	boom := func(host.PublishNext) host.PublishNext {
		return func(context.Context, *host.Outgoing) (host.Receipt, error) { panic("boom") }
	}
	var slow, failing *host.Publisher[string]
	bubble(t, func(s *service) {
		slow = host.To[string](s.host, s.in.To("out"), host.PublishMiddleware(
			middleware.PublishTimeout(1500*time.Millisecond), middleware.PublishRateLimit(limit)))
		failing = host.To[string](s.host, s.in.To("out"), host.PublishMiddleware(middleware.PublishRecover(), boom))
		host.Handle(s.in.Subscription("orders"), func(context.Context, *raw) error { return nil })
	}, func(t *testing.T, s *service) {
		began = time.Now()
		for range 2 {
			_, err := slow.Publish(t.Context(), "x")
			told.add("%v %v", time.Since(began), err)
		}
		limit.SetBurst(1)
		limit.SetLimit(rate.Every(time.Minute))
		_, err := slow.Publish(t.Context(), "x")
		var e *host.PublishError
		if !errors.As(err, &e) || e.MaybeSent {
			t.Errorf("got %v, want a publish that was not sent", err)
		}
		_, err = failing.Publish(t.Context(), "x")
		var p *host.PanicError
		if !errors.As(err, &p) || p.Value != "boom" || !strings.Contains(p.Stack, "middleware_test") {
			t.Errorf("got %v, want the panic with its stack", err)
		}
		got(t, &told, "[0s <nil> 1s <nil>]")
	})
}

func TestWhatCannotBeBuilt(t *testing.T) {
	for name, m := range map[string]func(host.Next) host.Next{
		"a timeout of 0":       middleware.Timeout(0),
		"no limiter":           middleware.RateLimit(nil),
		"ids without a header": middleware.Deduplicate("", 1, time.Second),
		"no ids":               middleware.Deduplicate("message-id", 0, time.Second),
		"ids for no time":      middleware.Deduplicate("message-id", 1, 0),
	} {
		t.Run(name, func(t *testing.T) {
			b := hosttest.NewBroker()
			h := host.New(b.Replace(), hosttest.Logger(t))
			host.Handle(h.Endpoint("in", host.Plugin{Name: "queues"}, nil).Subscription("orders"),
				func(context.Context, *raw) error { return nil }, host.Middleware(middleware.Recover(), m))
			var e *host.StartError
			if err := h.Run(t.Context()); !errors.As(err, &e) || len(e.Findings) != 1 ||
				!strings.Contains(e.Findings[0].Message, "number 2 cannot be built: middleware.") || len(e.Findings[0].Places) != 1 {
				t.Errorf("got %v, want one finding that says which", err)
			}
		})
	}
	for name, m := range map[string]func(host.PublishNext) host.PublishNext{
		"a timeout of 0": middleware.PublishTimeout(0),
		"no limiter":     middleware.PublishRateLimit(nil),
	} {
		t.Run("publishing, "+name, func(t *testing.T) {
			b := hosttest.NewBroker()
			h := host.New(b.Replace(), hosttest.Logger(t))
			in := h.Endpoint("in", host.Plugin{Name: "queues"}, nil)
			host.Handle(in.Subscription("orders"), func(context.Context, *raw) error { return nil })
			host.To[string](h, in.To("out"), host.PublishMiddleware(m))
			var e *host.StartError
			if err := h.Run(t.Context()); !errors.As(err, &e) || len(e.Findings) != 1 ||
				!strings.Contains(e.Findings[0].Message, "cannot be built: middleware.") {
				t.Errorf("got %v, want one finding that says which", err)
			}
		})
	}
}

func TestDeduplicate(t *testing.T) {
	var told book
	fail := map[string]error{"two": errors.New("no")}
	handle := func(_ context.Context, m *raw) error {
		told.add("%s", m.Value)
		err := fail[string(m.Value)]
		delete(fail, string(m.Value))
		return err
	}
	id := func(text, id string) hosttest.Message { return hosttest.Text(text).With("message-id", id) }
	bubble(t, func(s *service) {
		host.Handle(s.in.Subscription("orders"), handle, host.MaxAttempts(3),
			host.Middleware(middleware.Deduplicate("message-id", 2, time.Minute)))
	}, func(t *testing.T, s *service) {
		deliver := func(ms ...hosttest.Message) {
			s.broker.Deliver("orders", ms...)
			s.Wait()
		}
		deliver(id("one", "1"), id("one", "1"), hosttest.Text("none"), hosttest.Text("none"))
		got(t, &told, "[one none none]")
		deliver(id("two", "2"))
		got(t, &told, "[one none none two two]") // what failed is handled again
		deliver(id("two", "2"), id("one", "1"))
		got(t, &told, "[one none none two two]")
		deliver(id("three", "3"), id("one", "1")) // the third pushed the first out
		got(t, &told, "[one none none two two three one]")
		time.Sleep(time.Minute)
		deliver(id("three", "3"))
		got(t, &told, "[one none none two two three one three]")
		for _, v := range s.broker.Verdicts("orders") {
			if v.String()[len(v.String())-3:] != "ack" {
				t.Errorf("got %v, want all of them acked", v)
			}
		}
	})
}

// Two subscriptions do not share what they remember, though they were given one
// Deduplicate.
func TestDeduplicateIsPerSubscription(t *testing.T) {
	var told book
	bubble(t, func(s *service) {
		d := middleware.Deduplicate("message-id", 10, time.Hour)
		for _, name := range []string{"a", "b"} {
			host.Handle(s.in.Subscription(name), func(_ context.Context, m *raw) error {
				told.add("%s", m.Subscription())
				return nil
			}, host.Middleware(d))
		}
	}, func(t *testing.T, s *service) {
		for _, name := range []string{"a", "b"} {
			s.broker.Deliver(name, hosttest.Text("x").With("message-id", "1"))
			s.Wait()
		}
		got(t, &told, "[a b]")
	})
}

// What was handled and could not be published is handled again: its id is not
// taken for one of finished work. The same holds where middleware around it fails,
// panics, or ends the goroutine.
func TestDeduplicateForgetsWhatIsNotAcked(t *testing.T) {
	for name, c := range map[string]struct {
		fail  func(s *service)
		rules []host.Rule
		outer func(attempt int) error
	}{
		"forward": {
			fail:  func(s *service) { s.broker.FailPublishes("out", hosttest.Refused, 1) },
			rules: []host.Rule{host.Forward(host.New().Endpoint("in", host.Plugin{Name: "x"}, nil).To("out"))},
		},
		"error": {outer: func(attempt int) error {
			if attempt == 1 {
				return errors.New("no")
			}
			return nil
		}},
		"panic": {outer: func(attempt int) error {
			if attempt == 1 {
				panic("no")
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var told book
			bubble(t, func(s *service) {
				outer := func(next host.Next) host.Next {
					return func(ctx context.Context, m host.Incoming) error {
						if err := next(ctx, m); err != nil || c.outer == nil {
							return err
						}
						return c.outer(int(m.Attempt()))
					}
				}
				host.Handle(s.in.Subscription("orders"), func(_ context.Context, m *raw) error {
					told.add("%d", m.Attempt())
					return nil
				}, append(c.rules, host.MaxAttempts(3), host.Middleware(outer, middleware.Deduplicate("message-id", 10, time.Hour)))...)
			}, func(t *testing.T, s *service) {
				if c.fail != nil {
					c.fail(s)
				}
				s.broker.Deliver("orders", hosttest.Text("x").With("message-id", "1"))
				s.Wait()
				got(t, &told, "[1 2]")
			})
		})
	}
}

// Of two at once the second waits; it is handled where the first fails, and
// retried where its time is over before.
func TestDeduplicateTwoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told book
		first := errors.New("no")
		m := middleware.Deduplicate("message-id", 10, time.Hour)(func(ctx context.Context, m host.Incoming) error {
			told.add("%s", m.Payload())
			time.Sleep(time.Second)
			err := first
			first = nil
			return err
		})
		call := func(ctx context.Context, text string) {
			err := m(ctx, incoming{payload: text})
			told.add("%s %v", text, err)
		}
		go call(t.Context(), "a")
		synctest.Wait()
		go call(t.Context(), "b")
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		call(short, "c")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		got(t, &told, `[a c wait for the message of the same id "1": context deadline exceeded a no b b <nil>]`)
	})
}

// incoming is a message of the id 1.
type incoming struct {
	host.Incoming
	payload string
}

func (i incoming) Header(string) string     { return "1" }
func (i incoming) Payload() []byte          { return []byte(i.payload) }
func (i incoming) OnNotAcked(f func(error)) {}
