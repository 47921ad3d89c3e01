// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// TestAKilledPluginAnswersAllPending kills the plugin with a thousand publishes
// pending: each comes to an end; what is told unsent did not arrive, and what was
// sent may be doubled by nobody but the caller.
func TestAKilledPluginAnswersAllPending(t *testing.T) {
	b := newBench(t)
	s := b.service(host.WithRestartBackoff(time.Millisecond, time.Millisecond))
	mem := b.attach(s.Host, "mem", b.Settings)
	p := host.To[[]byte](s.Host, mem.To("out"), host.InFlight(1000, 1<<20))
	s.serve(t)
	c, err := b.Client(b.ctx, "mem")
	b.must(t, err)
	release := b.HoldReceipts("out")
	pending := make(map[string]*host.Pending)
	for i := range 1000 {
		text := fmt.Sprint(i)
		pending[text] = async(t, p, text)
	}
	b.must(t, c.Kill())
	release()
	maybe := 0
	arrived := make(map[string]bool)
	told := make(map[string]*host.PublishError)
	for text, q := range pending {
		_, err := q.Receipt(b.ctx)
		told[text] = failure(t, err)
	}
	for _, m := range b.Published("out") {
		arrived[string(m.Payload)] = true
	}
	for text, e := range told {
		switch {
		case e.MaybeSent:
			maybe++
		case arrived[text]:
			t.Errorf("%s arrived, told %v", text, e)
		case !errors.Is(e, host.ErrEndpointDown):
			t.Errorf("unsent: %v", e)
		}
	}
	if maybe == 0 || maybe < len(arrived) {
		t.Errorf("%d may have been sent, %d arrived", maybe, len(arrived))
	}
	eventually(t, "the next life publishes", func() bool {
		ctx, cancel := context.WithTimeout(b.ctx, 100*time.Millisecond)
		defer cancel()
		_, err := p.PublishAsync(ctx, []byte("next"))
		return err == nil
	})
	s.stop()
	if err := s.result(t); err != nil {
		t.Error(err)
	}
	b.nothingLeft(t)
}

// TestPublishesOverKills publishes without pause while the plugin is killed
// again and again: all that is confirmed arrived, once.
func TestPublishesOverKills(t *testing.T) {
	b := newBench(t)
	s := b.service(host.WithRestartBackoff(time.Millisecond, time.Millisecond), host.WithBreaker(100, time.Minute))
	mem := b.attach(s.Host, "mem", b.Settings)
	p := host.To[[]byte](s.Host, mem.To("out"), host.OrderedReceipts(), host.InFlight(64, 1<<20))
	s.serve(t)
	var confirmed sync.Map
	var sure, unsent atomic.Int64
	stop := make(chan struct{})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				text := fmt.Sprint(g, "-", i)
				var err error
				if g%2 == 0 {
					_, err = p.Publish(b.ctx, []byte(text))
				} else {
					var q *host.Pending
					if q, err = p.PublishAsync(b.ctx, []byte(text)); err == nil {
						_, err = q.Receipt(b.ctx)
					}
				}
				var e *host.PublishError
				switch {
				case err == nil:
					sure.Add(1)
					confirmed.Store(text, true)
				case !errors.As(err, &e):
					t.Errorf("got %v", err)
				case !e.MaybeSent:
					unsent.Add(1)
					confirmed.Store(text, false)
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	for range 5 {
		c, err := b.Client(b.ctx, "mem")
		b.must(t, err)
		before := sure.Load()
		eventually(t, "publishes are confirmed", func() bool { return sure.Load() > before+50 })
		b.must(t, c.Kill())
	}
	close(stop)
	all.Wait()
	arrived := make(map[string]int)
	for _, m := range b.Published("out") {
		arrived[string(m.Payload)]++
	}
	confirmed.Range(func(text, ok any) bool {
		want := 0
		if ok == true {
			want = 1
		}
		if n := arrived[text.(string)]; n != want {
			t.Errorf("%v arrived %d times, want %d", text, n, want)
		}
		return true
	})
	t.Logf("%d confirmed, %d unsent, %d arrived", sure.Load(), unsent.Load(), len(arrived))
}

// TestAStopWaitsForPending: what is pending when the stop begins gets its
// receipt, and what comes after the stop is told so.
func TestAStopWaitsForPending(t *testing.T) {
	x := newExchange(t, settings.Settings{})
	p := host.To[[]byte](x.Host, x.mem.To("out"))
	x.serve(t)
	release := x.HoldReceipts("out")
	q := async(t, p, "m")
	x.held(t, "out", 1)
	x.stop()
	eventually(t, "it stops", func() bool { return len(x.log.lines("host stops")) == 1 })
	if isDone(q) {
		t.Error("it is done without its receipt")
	}
	release()
	if _, err := q.Receipt(x.ctx); err != nil {
		t.Error(err)
	}
	if err := x.result(t); err != nil {
		t.Error(err)
	}
	for _, err := range []error{
		func() error { _, err := p.Publish(x.ctx, nil); return err }(),
		func() error { _, err := p.PublishAsync(x.ctx, nil); return err }(),
	} {
		if e := failure(t, err); e.MaybeSent || !errors.Is(e, host.ErrEndpointDown) {
			t.Errorf("after the end: %v", e)
		}
	}
}

// TestAnAbortAnswersPending: nobody knows of what has no receipt, in flight as in
// line, and what waits for room is not sent.
func TestAnAbortAnswersPending(t *testing.T) {
	for _, opts := range [][]host.PublisherOption{
		{host.InFlight(2, 1<<20)},
		{host.InFlight(2, 1<<20), host.OrderedReceipts()},
	} {
		x := newExchange(t, settings.Settings{})
		p := host.To[[]byte](x.Host, x.mem.To("out"), opts...)
		x.serve(t)
		x.HoldReceipts("out")
		one, two := async(t, p, "one"), async(t, p, "two")
		x.held(t, "out", 2)
		waits := make(chan error)
		go func() {
			_, err := p.Publish(context.Background(), []byte("three"))
			waits <- err
		}()
		x.Abort()
		for _, q := range []*host.Pending{one, two} {
			_, err := q.Receipt(x.ctx)
			if e := failure(t, err); !e.MaybeSent {
				t.Errorf("got %v", e)
			}
		}
		if e := failure(t, receive(t, waits)); e.MaybeSent || !errors.Is(e, host.ErrEndpointDown) {
			t.Errorf("got %v", e)
		}
		var abandoned *host.AbandonedError
		if err := x.result(t); !errors.As(err, &abandoned) || abandoned.Subscriptions[0].Publishes != 2 {
			t.Errorf("got %v, want the publishes to be listed", err)
		}
	}
}

// TestPendingDoNotHoldUpAStopBeyondItsLimit: a receipt that never comes holds up a stop for
// the drain limit, no longer.
func TestPendingDoNotHoldUpAStopBeyondItsLimit(t *testing.T) {
	synctest.Test(t, testPendingDoNotHoldUpAStopBeyondItsLimit)
}

func testPendingDoNotHoldUpAStopBeyondItsLimit(t *testing.T) {
	x := newExchange(t, settings.Settings{}, host.WithDrainLimit(50*time.Millisecond))
	p := host.To[[]byte](x.Host, x.mem.To("out"))
	x.serve(t)
	x.HoldReceipts("out")
	q := async(t, p, "m")
	x.held(t, "out", 1)
	began := time.Now()
	x.stop()
	var abandoned *host.AbandonedError
	if err := x.result(t); !errors.As(err, &abandoned) || len(abandoned.Subscriptions) != 1 || abandoned.Subscriptions[0].Publishes != 1 {
		t.Errorf("got %v, want the publish to be listed", err)
	}
	if took := x.stopTook(began); took > time.Second {
		t.Errorf("the stop took %v", took)
	}
	_, err := q.Receipt(x.ctx)
	if e := failure(t, err); !e.MaybeSent {
		t.Errorf("got %v", e)
	}
	if n := len(x.log.lines("publishes without a receipt were cut off", "count=1")); n != 1 {
		t.Errorf("%d lines about it", n)
	}
}

// TestHandlersPublishWhileTheWindowIsFull: handlers wait for room in an endpoint
// whose window their own publishes use up; copies of the same endpoint have a
// quarter of it for themselves, so nothing stands still.
func TestHandlersPublishWhileTheWindowIsFull(t *testing.T) {
	for name, own := range map[string]string{"elsewhere": "out", "to the own address": "orders"} {
		t.Run(name, func(t *testing.T) {
			set := settings.Settings{}.With("orders", settings.KindA())
			x := newExchange(t, set, host.WithPublishWindow(4, 1<<20))
			to := host.To[[]byte](x.Host, x.mem.To(own), host.InFlight(2, 1<<20))
			var handled atomic.Int64
			host.Handle(x.mem.Subscription("orders"), func(ctx context.Context, m *host.Message[[]byte]) error {
				handled.Add(1)
				if string(m.Value) == "more" {
					return nil
				}
				if m.Attempt() == 1 {
					return host.Retry(nil) // a copy
				}
				for range 3 {
					if _, err := to.Publish(ctx, []byte("more")); err != nil {
						return err
					}
				}
				return nil
			}, host.MaxAttempts(3))
			x.Publish("orders", make([]memory.Message, 100)...)
			x.serve(t)
			var flood sync.WaitGroup
			for range 8 { // others use the window up all the time
				flood.Go(func() {
					for range 50 {
						if _, err := to.Publish(x.ctx, []byte("more")); err != nil {
							t.Error(err)
						}
					}
				})
			}
			flood.Wait()
			if err := x.Wait(x.ctx, "all is settled", func(v memory.View) bool {
				a := v.Account("orders")
				return a.Queued == 0 && a.Outstanding == 0 && len(v.Published(own)) >= 300+400
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestPublishedBytesAreReadUntilTheReceipt: a caller that gets its bytes back by
// a receipt, or with the message unsent, may use them again at once.
func TestPublishedBytesAreReadUntilTheReceipt(t *testing.T) {
	b := newBench(t)
	s := b.service()
	mem := b.attach(s.Host, "mem", b.Settings)
	p := host.To[core.Message](s.Host, mem.To("out"), host.InFlight(4, 1<<20))
	s.serve(t)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			buffer := make([]byte, 4096)
			value := make([]byte, 64)
			for i := range 100 {
				for j := range buffer {
					buffer[j] = byte('a' + (g*100+i)%26)
				}
				copy(value, buffer)
				ctx, cancel := context.WithTimeout(b.ctx, time.Duration(i%7)*100*time.Microsecond)
				if i%7 == 0 {
					ctx = b.ctx
				}
				// Given up or not: the process has a copy when Publish returns.
				_, _ = p.Publish(ctx, core.Message{Payload: buffer, Headers: core.Headers{{Name: "v", Value: value}}})
				cancel()
			}
		})
	}
	all.Wait()
	for _, m := range b.Published("out") {
		v, _ := m.Header("v")
		for _, c := range m.Payload {
			if c != m.Payload[0] || v[0] != c {
				t.Fatalf("a message was changed after it was published: %q, header %q", m.Payload, v)
			}
		}
	}
}
