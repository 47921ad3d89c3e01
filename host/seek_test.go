// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// tally counts by payload.
type tally struct {
	mu   sync.Mutex
	runs map[string]int
	list []string
}

func (c *tally) add(m *host.Message[[]byte]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs == nil {
		c.runs = make(map[string]int)
	}
	c.runs[string(m.Value)]++
	c.list = append(c.list, string(m.Value))
}

// now returns a copy of the counts and how many there are in all.
func (c *tally) now() (map[string]int, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string]int, len(c.runs))
	for k, n := range c.runs {
		out[k] = n
	}
	return out, len(c.list)
}

func (c *tally) order() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.list)
}

// A seek to the earliest message under load, through a real process: every message
// is handled once more, whatever the handlers of before say of it (P-15).
func TestSeekUnderLoadThroughARealProcess(t *testing.T) {
	const n = 1000
	b := newBench(t)
	s := b.service()
	in := b.attach(s.Host, "mem", b.Settings.With("orders", settings.KindA()))
	orders := in.Subscription("orders")
	var handled tally
	var once sync.Once
	half := make(chan struct{})
	host.Handle(orders, func(_ context.Context, m *host.Message[[]byte]) error {
		handled.add(m)
		if _, n := handled.now(); n >= 500 { // two workers may pass it at a time
			once.Do(func() { close(half) })
		}
		return nil
	}, host.Workers(8))
	var ms []memory.Message
	for i := range n {
		ms = append(ms, memory.Message{Payload: fmt.Append(nil, i)})
	}
	b.Publish("orders", ms...)
	s.serve(t)
	receive(t, half)
	before, _ := handled.now()
	if err := orders.Seek(b.ctx, host.Earliest()); err != nil {
		t.Fatal(err)
	}
	b.must(t, b.WaitIdle(b.ctx, "orders"))
	after, _ := handled.now()
	for i := range n {
		if p := fmt.Sprint(i); after[p] <= before[p] {
			t.Errorf("message %s was not handled behind the seek", p)
		}
	}
	if a := b.Account("orders"); a.Acked != n || a.Lost != 0 {
		t.Errorf("account: %v", a)
	}
	s.stop()
	if err := s.result(t); err != nil {
		t.Error(err)
	}
	if n := len(s.log.lines("subscription was moved", "endpoint=mem", "subscription=orders", "the earliest message")); n != 1 {
		t.Errorf("%d lines tell of it", n)
	}
}

// Seek goes where it is told to, by a delivery's own position as well, and while
// the subscription is paused.
func TestSeekToEachKindOfPosition(t *testing.T) {
	for name, tt := range map[string]struct {
		to   func(third []byte) host.Position
		want []string
	}{
		"earliest":  {func([]byte) host.Position { return host.Earliest() }, []string{"1", "2", "3", "4", "new"}},
		"latest":    {func([]byte) host.Position { return host.Latest() }, []string{"new"}},
		"position":  {host.AtPosition, []string{"3", "4", "new"}},
		"time":      {func([]byte) host.Position { return host.PublishedAfter(time.Now().Add(-90 * time.Minute)) }, []string{"3", "4", "new"}},
		"long past": {func([]byte) host.Position { return host.PublishedAfter(time.Unix(0, 0)) }, []string{"1", "2", "3", "4", "new"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := hosttest.NewBroker()
				h := host.New(b.Replace(), hosttest.Logger(t))
				orders := h.Endpoint("shop", host.Plugin{Name: "pulsar"}, nil).Subscription("orders")
				var handled tally
				var third []byte
				host.Handle(orders, func(_ context.Context, m *host.Message[[]byte]) error {
					handled.add(m)
					if string(m.Value) == "3" {
						third = m.Clone().Position()
					}
					return nil
				})
				s := hosttest.Start(t, h)
				for i := range 4 {
					b.Deliver("orders", hosttest.Text(fmt.Sprint(i+1)))
					if i == 1 {
						time.Sleep(time.Hour)
					}
				}
				time.Sleep(time.Hour)
				s.Wait()
				orders.Pause()
				_, before := handled.now()
				if err := orders.Seek(t.Context(), tt.to(third)); err != nil {
					t.Fatal(err)
				}
				b.Deliver("orders", hosttest.Text("new"))
				orders.Resume()
				s.Wait()
				if d := cmp.Diff(tt.want, handled.order()[before:]); d != "" {
					t.Errorf("behind the seek (-want +got):\n%s", d)
				}
			})
		})
	}
}

// A handler may move its own subscription; its ack takes nothing away.
func TestSeekFromAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		h := host.New(b.Replace(), hosttest.Logger(t))
		orders := h.Endpoint("shop", host.Plugin{Name: "pulsar"}, nil).Subscription("orders")
		var handled tally
		host.Handle(orders, func(ctx context.Context, m *host.Message[[]byte]) error {
			handled.add(m)
			if _, n := handled.now(); n == 2 {
				return orders.Seek(ctx, host.Earliest())
			}
			return nil
		})
		s := hosttest.Start(t, h)
		b.Deliver("orders", hosttest.Text("1"), hosttest.Text("2"), hosttest.Text("3"))
		s.Wait()
		if d := cmp.Diff([]string{"1", "2", "1", "2", "3"}, handled.order()); d != "" {
			t.Errorf("handled (-want +got):\n%s", d)
		}
	})
}

// A batch that gathers holds nothing of before the seek, and a copy that waits
// leaves when it is due.
func TestSeekWhileOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		h := host.New(b.Replace(), hosttest.Logger(t))
		shop := h.Endpoint("shop", host.Plugin{Name: "pulsar"}, nil)
		orders, late := shop.Subscription("orders"), shop.Subscription("late")
		var batches []int
		host.HandleBatch(orders, 10, time.Minute, func(_ context.Context, ms []*host.Message[[]byte]) []error {
			batches = append(batches, len(ms))
			return nil
		})
		var handled tally
		host.Handle(late, func(_ context.Context, m *host.Message[[]byte]) error {
			handled.add(m)
			if m.Attempt() == 1 {
				return host.RetryAfter(time.Hour, errors.New("not yet"))
			}
			return nil
		})
		s := hosttest.Start(t, h)
		b.Deliver("orders", hosttest.Text("1"), hosttest.Text("2"), hosttest.Text("3"))
		b.Deliver("late", hosttest.Text("copied"))
		time.Sleep(time.Second)
		synctest.Wait()
		for sub, to := range map[*host.Subscription]host.Position{orders: host.Earliest(), late: host.Latest()} {
			if err := sub.Seek(t.Context(), to); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Hour)
		s.Wait()
		if d := cmp.Diff([]int{3}, batches); d != "" {
			t.Errorf("batches (-want +got):\n%s", d)
		}
		if d := cmp.Diff([]string{"copied", "copied"}, handled.order()); d != "" {
			t.Errorf("copies (-want +got):\n%s", d)
		}
	})
}

// What cannot be sought is an error that says why and what to do.
func TestSeekErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		s := newService(b.Replace(), host.StayUp(), host.WithRestartBackoff(10*time.Second, 10*time.Second))
		orders := s.Endpoint("shop", host.Plugin{Name: "pulsar"}, nil).Subscription("orders")
		host.Handle(orders, acks)
		fails := func(when string, to host.Position, ctx context.Context, want error, text string) {
			t.Helper()
			err := orders.Seek(ctx, to)
			var e *host.SeekError
			switch {
			case !errors.As(err, &e) || e.Endpoint != "shop" || e.Subscription != "orders" || e.MaybeMoved:
				t.Errorf("%s: %#v", when, err)
			case want != nil && !errors.Is(err, want), !strings.Contains(err.Error(), text):
				t.Errorf("%s: %v, want %v with %q", when, err, want, text)
			}
		}
		invalid := func(when string, to host.Position, text string) {
			t.Helper()
			fails(when, to, t.Context(), nil, text)
			var f *core.Fault
			if err := orders.Seek(t.Context(), to); !errors.As(err, &f) || f.Code != core.FaultInvalid {
				t.Errorf("%s: %v, want a fault", when, err)
			}
		}
		fails("before Run", host.Earliest(), t.Context(), host.ErrEndpointDown, "try again when the host is ready")
		s.run(t)
		synctest.Wait()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		fails("ended context", host.Earliest(), over, context.Canceled, "the earliest message")
		invalid("no position", host.Position{}, "AtPosition")
		invalid("empty position", host.AtPosition(nil), "gives its messages none")
		invalid("long position", host.AtPosition(make([]byte, 1<<20)), "the limit is 524288")
		invalid("year 1", host.PublishedAfter(time.Time{}), "1970")
		invalid("year 2300", host.PublishedAfter(time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)), "2262")
		invalid("what the transport refuses", host.AtPosition([]byte("x")), "to position x: ")
		b.Crash(t, "shop")
		synctest.Wait()
		fails("while its plugin is down", host.Latest(), t.Context(), host.ErrEndpointDown, "the latest message")
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if err := orders.Seek(t.Context(), host.Latest()); err != nil {
			t.Errorf("with its second plugin: %v", err)
		}
		b.End("orders")
		synctest.Wait()
		fails("behind the end", host.Latest(), t.Context(), host.ErrSubscriptionEnded, "run the host anew")
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
		fails("behind the stop", host.Latest(), t.Context(), host.ErrEndpointDown, "")
	})
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		orders := attach(s.Host, "in", newQueues()).Subscription("orders")
		host.Handle(orders, acks)
		s.run(t)
		synctest.Wait()
		if err := orders.Seek(t.Context(), host.Latest()); !errors.Is(err, host.ErrNoSeek) {
			t.Errorf("a transport that cannot seek: %v", err)
		}
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
	})
}
