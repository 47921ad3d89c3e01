// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// givesUp is middleware that does not wait for what it has passed on.
func givesUp(after time.Duration) func(host.Next) host.Next {
	return func(next host.Next) host.Next {
		return func(ctx context.Context, m host.Incoming) error {
			done := make(chan error, 1)
			go func() { done <- next(ctx, m) }()
			select {
			case err := <-done:
				return err
			case <-time.After(after):
				return host.Drop(errors.New("given up"))
			}
		}
	}
}

// A handler that its middleware has given up keeps its message until it returns:
// nothing else is handled on its worker meanwhile, and nothing is settled.
func TestMiddlewareThatGivesUp(t *testing.T) {
	var mu sync.Mutex
	var told []string
	onBroker(t, func(_ *host.Host, in *host.Endpoint) {
		host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
			before := string(m.Value) + m.Header("n")
			time.Sleep(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			told = append(told, before+" "+string(m.Value)+m.Header("n"))
			return nil
		}, host.Middleware(givesUp(time.Second)))
	}, func(b *hosttest.Broker, s *hosttest.Service) {
		for i := range 3 {
			b.Deliver("orders", hosttest.Text(fmt.Sprint("message ", i)).With("n", fmt.Sprint("!", i)))
		}
		s.Wait()
		if got, want := strings.Join(told, ", "), "message 0!0 message 0!0, message 1!1 message 1!1, message 2!2 message 2!2"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := fmt.Sprint(b.Verdicts("orders")); got != "[1 reject 2 reject 3 reject]" {
			t.Errorf("got %s, want what the middleware said", got)
		}
	})
}

// Middleware cannot run the handler when it has returned, nor twice at a time.
func TestMiddlewareOutOfTurn(t *testing.T) {
	late, busy := make(chan error, 9), make(chan error, 9)
	begun := make(chan struct{}, 9)
	var runs int
	onBroker(t, func(_ *host.Host, in *host.Endpoint) {
		host.Handle(in.Subscription("late"), func(context.Context, *host.Message[[]byte]) error { runs++; return nil },
			host.Middleware(func(next host.Next) host.Next {
				return func(ctx context.Context, m host.Incoming) error {
					go func() {
						time.Sleep(time.Minute)
						late <- next(ctx, m)
					}()
					return next(ctx, m)
				}
			}))
		host.Handle(in.Subscription("busy"), func(context.Context, *host.Message[[]byte]) error {
			begun <- struct{}{}
			time.Sleep(time.Second)
			return nil
		}, host.Middleware(func(next host.Next) host.Next {
			return func(ctx context.Context, m host.Incoming) error {
				done := make(chan error)
				go func() { done <- next(ctx, m) }()
				<-begun
				busy <- next(ctx, m)
				return <-done
			}
		}))
	}, func(b *hosttest.Broker, s *hosttest.Service) {
		b.Deliver("late", hosttest.Text("1"), hosttest.Text("2"))
		b.Deliver("busy", hosttest.Text("3"))
		time.Sleep(2 * time.Minute)
		s.Wait()
		for _, c := range []<-chan error{late, late, busy} {
			if err := <-c; err == nil || !strings.Contains(err.Error(), "middleware") {
				t.Errorf("got %v, want a refusal", err)
			}
		}
		if got := fmt.Sprint(runs, b.Verdicts("late"), b.Verdicts("busy")); got != "2 [1 ack 2 ack] [3 ack]" {
			t.Errorf("got %s", got)
		}
	})
}

// What a handler has left running cannot hold anything back with a message that is
// somebody else's by now.
func TestPublishWithTooLate(t *testing.T) {
	type message = host.Message[[]byte]
	for name, register := range map[string]func(s *host.Subscription, f func(m *message), rules ...host.Rule){
		"one by one": func(s *host.Subscription, f func(m *message), rules ...host.Rule) {
			host.Handle(s, func(_ context.Context, m *message) error { f(m); return nil }, rules...)
		},
		"batches": func(s *host.Subscription, f func(m *message), rules ...host.Rule) {
			host.HandleBatch(s, 1, time.Second, func(_ context.Context, ms []*message) []error { f(ms[0]); return nil }, rules...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var first *message
			var err error
			onBroker(t, func(h *host.Host, in *host.Endpoint) {
				p := host.To[[]byte](h, in.To("out"))
				register(in.Subscription("orders"), func(m *message) {
					if first == nil {
						first = m
						err = p.PublishWith(m, []byte("in time"))
						return
					}
					err = errors.Join(err, p.PublishWith(first, []byte("too late")))
				}, host.Publishes(p))
			}, func(b *hosttest.Broker, s *hosttest.Service) {
				b.Deliver("orders", hosttest.Text("1"), hosttest.Text("2"))
				s.Wait()
				if got := fmt.Sprint(b.Published("out")); got != `["in time"]` {
					t.Errorf("published %s", got)
				}
				if err == nil || !strings.Contains(err.Error(), "not in the hands") {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// Middleware for publishing that has returned does not publish any more: the
// message is its caller's again. What it has left under way ends.
func TestPublishMiddlewareThatGivesUp(t *testing.T) {
	for name, pass := range map[string]func(next host.PublishNext, ctx context.Context, o *host.Outgoing, told chan<- error) error{
		"under way": func(next host.PublishNext, ctx context.Context, o *host.Outgoing, told chan<- error) error {
			go func() {
				_, err := next(context.WithoutCancel(ctx), o)
				told <- err
			}()
			time.Sleep(time.Second)
			return errors.New("given up")
		},
		"not begun": func(next host.PublishNext, ctx context.Context, o *host.Outgoing, told chan<- error) error {
			go func() {
				time.Sleep(time.Minute)
				_, err := next(ctx, o)
				told <- err
			}()
			return errors.New("given up")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := make(chan error, 1)
				b := hosttest.NewBroker()
				h := host.New(b.Replace(), hosttest.Logger(t))
				in := h.Endpoint("in", host.Plugin{Name: "queues"}, nil)
				host.Handle(in.Subscription("orders"), acks)
				p := host.To[[]byte](h, in.To("out"), host.InFlight(1, 1<<20), host.PublishMiddleware(func(next host.PublishNext) host.PublishNext {
					return func(ctx context.Context, o *host.Outgoing) (host.Receipt, error) {
						return host.Receipt{}, pass(next, ctx, o, told)
					}
				}))
				q := host.To[string](h, in.To("next"))
				hosttest.Start(t, h, b)
				b.FailPublishes("out", hosttest.Unanswered, 1)
				payload := []byte("payload")
				if _, err := p.Publish(t.Context(), payload); err == nil {
					t.Error("no error")
				}
				copy(payload, "PAYLOAD") // it is the caller's again
				if err := <-told; err == nil {
					t.Error("it was published after all")
				}
				if _, err := q.Publish(t.Context(), "x"); err != nil {
					t.Error(err)
				}
				for _, m := range b.Published("out") {
					if m.Text() != "payload" {
						t.Errorf("published %s", m)
					}
				}
			})
		})
	}
}
