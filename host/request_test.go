// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// unanswered returns the *RequestError of an error.
func unanswered(t *testing.T, err error) *host.RequestError {
	t.Helper()
	var e *host.RequestError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *RequestError", err)
	}
	return e
}

// request sends a raw request.
func request(ctx context.Context, x *exchange, name, text string, opts ...host.SendOption) (string, error) {
	reply, err := host.Request[[]byte, []byte](ctx, x.Host, x.mem.To(name), []byte(text), opts...)
	return string(reply), err
}

func TestRequest(t *testing.T) {
	type question struct{ N int }
	type answer struct{ Twice int }
	x := newExchange(t, settings.Settings{}, host.WithPublishMiddleware(marks("a")))
	var ids sync.Map
	x.Respond("twice", func(m memory.Message) memory.Message {
		id, _ := m.Header("correlation-id")
		path, _ := m.Header("path")
		if _, known := ids.LoadOrStore(id, true); known || len(id) < 20 || path != "a" {
			t.Errorf("correlation id %q, path %q", id, path)
		}
		var n int
		_, _ = fmt.Sscanf(string(m.Payload), `{"N":%d}`, &n)
		return memory.Text(fmt.Sprintf(`{"Twice":%d}`, 2*n))
	})
	x.Respond("own", func(m memory.Message) memory.Message {
		id, _ := m.Header("correlation-id")
		return memory.Text(id)
	})
	x.Respond("proto", func(m memory.Message) memory.Message {
		return memory.Message{Headers: core.Headers{{Name: "Content-Type", Value: []byte("application/json")}}, Payload: []byte(`"v"`)}
	})
	x.Respond("message", func(m memory.Message) memory.Message {
		return memory.Message{Headers: core.Headers{{Name: "a", Value: []byte("b")}}, Payload: m.Payload}
	})
	x.serve(t)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			got, err := host.Request[question, answer](x.ctx, x.Host, x.mem.To("twice"), question{i})
			if err != nil || got.Twice != 2*i {
				t.Errorf("twice %d: got %v, %v", i, got, err)
			}
		})
	}
	all.Wait()
	if got, err := request(x.ctx, x, "own", "", host.WithHeader("Correlation-ID", "mine")); err != nil || got != "mine" {
		t.Errorf("own id: got %q, %v", got, err)
	}
	if got, err := host.Request[[]byte, *wrapperspb.StringValue](x.ctx, x.Host, x.mem.To("proto"), nil); err != nil || got.GetValue() != "v" {
		t.Errorf("protobuf: got %v, %v", got, err)
	}
	m, err := host.Request[core.Message, core.Message](x.ctx, x.Host, x.mem.To("message"), core.Message{Payload: []byte("p")})
	if a, _ := m.Headers.Get("a"); err != nil || string(a) != "b" || string(m.Payload) != "p" {
		t.Errorf("message: got %v, %v", m, err)
	}
}

func TestRequestIsRefused(t *testing.T) {
	set := settings.Settings{}.WithDestination("small", settings.Destination{MaxBytes: 3, Headers: "none"}).
		WithDestination("plain", settings.Destination{Headers: "none"}).
		WithDestination("refused", settings.Destination{Refuse: "not today"})
	x := newExchange(t, set)
	x.Respond("small", func(m memory.Message) memory.Message {
		return memory.Text(fmt.Sprint(len(m.Headers), string(m.Payload)))
	})
	x.Respond("json", func(memory.Message) memory.Message { return memory.Text("no JSON") })
	without := attach(x.Host, "without", newQueues())
	if _, err := request(t.Context(), x, "small", "m"); !errors.Is(unanswered(t, err), host.ErrEndpointDown) || unanswered(t, err).MaybeSent {
		t.Errorf("before Run: %v", err)
	}
	x.serve(t)
	if got, err := request(x.ctx, x, "small", "abc"); err != nil || got != "0abc" {
		t.Errorf("a destination without headers: got %q, %v", got, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	text := func(d core.Destination, opts ...host.SendOption) error {
		_, err := host.Request[[]byte, []byte](x.ctx, x.Host, d, []byte("four"), opts...)
		return err
	}
	for name, c := range map[string]struct {
		err  error
		says string
		sent bool
		is   error
	}{
		"too large":        {text(x.mem.To("small")), "limit of 3", false, nil},
		"a header":         {text(x.mem.To("plain"), host.WithHeader("a", "")), "leave a out", false, nil},
		"not attached":     {text(dest("nowhere", "a")), "attach one named \"nowhere\"", false, nil},
		"no name":          {text(x.mem.To("")), "names no destination", false, nil},
		"no timeout":       {text(x.mem.To("small"), host.WithTimeout(0)), "0s is no limit", false, nil},
		"no such options":  {text(x.mem.To("x"), host.WithOptions(map[string]int{"a": 1})), "a: is no known field", false, nil},
		"nobody there":     {text(x.mem.To("x")), "nobody answers", false, nil},
		"refused":          {text(x.mem.To("refused")), "not today", false, nil},
		"without requests": {text(without.To("x")), "no requests", false, host.ErrNoRequests},
		"cancelled":        {func() error { _, err := request(ended, x, "small", ""); return err }(), "canceled", false, context.Canceled},
		"unreadable reply": {func() error {
			_, err := host.Request[int, map[string]int](x.ctx, x.Host, x.mem.To("json"), 1)
			return err
		}(), "decode JSON", true, nil},
		"unwritable": {func() error {
			_, err := host.Request[float64, int](x.ctx, x.Host, x.mem.To("json"), 1, host.WithContentType("a/b"))
			return err
		}(), "encode float64", false, nil},
	} {
		e := unanswered(t, c.err)
		if e.MaybeSent != c.sent || !strings.Contains(e.Error(), c.says) || c.is != nil && !errors.Is(e, c.is) {
			t.Errorf("%s: got %v, want %q, MaybeSent %v", name, e, c.says, c.sent)
		}
	}
}

// TestRequestTimesOut: at the default, at WithTimeout, at the caller's context.
func TestRequestTimesOut(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []host.SendOption
		ctx   time.Duration
		after time.Duration
	}{
		"by default":     {nil, 0, 30 * time.Second},
		"by WithTimeout": {[]host.SendOption{host.WithTimeout(time.Minute)}, 0, time.Minute},
		"by the context": {nil, time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newExchange(t, settings.Settings{})
				release := make(chan struct{})
				x.Respond("slow", func(m memory.Message) memory.Message {
					<-release
					return m
				})
				x.serve(t)
				ctx := t.Context()
				if c.ctx > 0 {
					limited, cancel := context.WithTimeout(ctx, c.ctx)
					defer cancel()
					ctx = limited
				}
				began := time.Now()
				_, err := request(ctx, x, "slow", "m", c.opts...)
				if e := unanswered(t, err); !e.MaybeSent || !errors.Is(e, context.DeadlineExceeded) || time.Since(began) != c.after {
					t.Errorf("got %v after %v, want the end of its time after %v", e, time.Since(began), c.after)
				}
				close(release)
				synctest.Wait()
				x.stop()
				if err := x.result(t); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestRequestsOfAKilledPlugin: each ends at once, and may have been handled; the
// next life answers.
func TestRequestsOfAKilledPlugin(t *testing.T) {
	b := newBench(t)
	s := b.service(host.WithRestartBackoff(time.Millisecond, time.Millisecond))
	mem := b.attach(s.Host, "mem", b.Settings)
	release := make(chan struct{})
	var asked atomic.Int64
	b.Respond("slow", func(m memory.Message) memory.Message {
		asked.Add(1)
		<-release
		return m
	})
	s.serve(t)
	c, err := b.Client(b.ctx, "mem")
	b.must(t, err)
	const n = 100
	errs := make(chan error, n)
	for range n {
		go func() {
			_, err := host.Request[[]byte, []byte](b.ctx, s.Host, mem.To("slow"), []byte("m"))
			errs <- err
		}()
	}
	eventually(t, "all are asked", func() bool { return asked.Load() == n })
	b.must(t, c.Kill())
	for range n {
		e := unanswered(t, receive(t, errs))
		if !e.MaybeSent || faultCode(t, e) != core.FaultUnavailable {
			t.Fatalf("got %v", e)
		}
	}
	close(release)
	eventually(t, "the next life answers", func() bool {
		reply, err := host.Request[[]byte, []byte](b.ctx, s.Host, mem.To("slow"), []byte("again"))
		return err == nil && string(reply) == "again"
	})
	s.stop()
	if err := s.result(t); err != nil {
		t.Error(err)
	}
	b.nothingLeft(t)
}

// TestAStopWaitsForRequests, as for publishes, and cuts them off at its limit.
func TestAStopWaitsForRequests(t *testing.T) {
	for name, limit := range map[string]time.Duration{"in time": 0, "cut off": 50 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newExchange(t, settings.Settings{}, host.WithDrainLimit(limit))
				asked, release := make(chan struct{}), make(chan struct{})
				x.Respond("slow", func(m memory.Message) memory.Message {
					close(asked)
					<-release
					return m
				})
				x.serve(t)
				errs := make(chan error, 1)
				go func() {
					_, err := request(t.Context(), x, "slow", "m")
					errs <- err
				}()
				receive(t, asked)
				x.stop()
				if limit > 0 {
					if e := unanswered(t, receive(t, errs)); !e.MaybeSent {
						t.Errorf("got %v", e)
					}
					close(release)
				} else {
					eventually(t, "it stops", func() bool { return len(x.log.lines("host stops")) == 1 })
					close(release)
					if err := receive(t, errs); err != nil {
						t.Error(err)
					}
				}
				if err := x.result(t); err != nil {
					t.Error(err)
				}
				if _, err := request(t.Context(), x, "slow", "m"); !errors.Is(unanswered(t, err), host.ErrEndpointDown) {
					t.Errorf("after the end: %v", err)
				}
			})
		})
	}
}

// TestRequestsWaitForRoom: no more than 1024 are under way on an endpoint.
func TestRequestsWaitForRoom(t *testing.T) {
	synctest.Test(t, testRequestsWaitForRoom)
}

func testRequestsWaitForRoom(t *testing.T) {
	x := newExchange(t, settings.Settings{})
	release := make(chan struct{})
	var now, most atomic.Int64
	x.Respond("slow", func(m memory.Message) memory.Message {
		n := now.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		<-release
		now.Add(-1)
		return m
	})
	x.serve(t)
	var all sync.WaitGroup
	for range 1100 {
		all.Go(func() {
			if _, err := request(x.ctx, x, "slow", "m"); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "as many as may are asked", func() bool { return now.Load() == 1024 })
	_, err := request(x.ctx, x, "slow", "m", host.WithTimeout(time.Millisecond))
	if e := unanswered(t, err); e.MaybeSent || !errors.Is(e, context.DeadlineExceeded) {
		t.Errorf("got %v", e)
	}
	close(release)
	all.Wait()
	if most.Load() > 1024 {
		t.Errorf("%d at a time", most.Load())
	}
}

// TestRequestMiddlewareThatMisbehaves: the same as with publishes.
func TestRequestMiddlewareThatMisbehaves(t *testing.T) {
	for name, c := range map[string]struct {
		does func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error)
		says string
		sent bool
	}{
		"swallows": {func(context.Context, *host.Outgoing, host.PublishNext) (host.Receipt, error) {
			return host.Receipt{}, nil
		}, "request to q@mem: middleware kept it from leaving and gave no error", false},
		"asks twice": {func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error) {
			_, _ = next(ctx, o)
			return next(ctx, o)
		}, "request to q@mem (it may have been sent): the message has left already; middleware may pass it on once here", true},
		"without an end": {func(_ context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error) {
			return next(context.Background(), o)
		}, "", false},
		"wraps the error": {func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error) {
			o.Delay = -1
			_, err := next(ctx, o)
			return host.Receipt{}, fmt.Errorf("mine: %w", err)
		}, "request to q@mem: mine: request to q@mem: -1ns is no delay; use 0 for none, or more", false},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExchange(t, settings.Settings{}, host.WithPublishMiddleware(around(c.does)))
			x.Respond("q", func(m memory.Message) memory.Message { return m })
			x.serve(t)
			got, err := request(x.ctx, x, "q", "m")
			if c.says == "" {
				if err != nil || got != "m" {
					t.Errorf("got %q, %v", got, err)
				}
				return
			}
			if e := unanswered(t, err); e.MaybeSent != c.sent || e.Error() != c.says {
				t.Errorf("got %v, want %s", e, c.says)
			}
		})
	}
}
