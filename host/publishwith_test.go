// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// settled waits until all of a queue is settled.
func (x *exchange) settled(t *testing.T, queue string) {
	t.Helper()
	if err := x.Wait(x.ctx, "all of "+queue+" is settled", func(v memory.View) bool {
		a := v.Account(queue)
		return a.Published > 0 && a.Queued == 0 && a.Outstanding == 0
	}); err != nil {
		t.Fatal(err)
	}
}

// TestHeldBackUntilTheHandlerReturns: what is held back leaves after the handler,
// in order and before the ack, with what Forward publishes behind it; after any
// other outcome it does not.
func TestHeldBackUntilTheHandlerReturns(t *testing.T) {
	x := newExchange(t, settings.Settings{}.With("orders", settings.KindA()), host.WithPublishMiddleware(marks("a")))
	first := host.To[[]byte](x.Host, x.mem.To("first"), host.PublishMiddleware(marks("b")))
	second := host.To[map[string]int](x.Host, x.mem.To("second"))
	release := x.HoldReceipts("second")
	returning := make(chan struct{})
	host.Handle(x.mem.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		for i := range 3 {
			if err := first.PublishWith(m, m.Value, host.WithHeader("n", fmt.Sprint(i)), host.WithDedupID("id")); err != nil {
				t.Error(err)
			}
			if err := second.PublishWith(m, map[string]int{"n": i}); err != nil {
				t.Error(err)
			}
		}
		if n := len(x.texts("first")) + len(x.texts("second")); n != 0 && string(m.Value) != "acked" {
			t.Errorf("%d messages left before the handler of %s returned", n, m.Value)
		}
		switch string(m.Value) {
		case "dropped":
			return host.Drop(nil)
		case "panics":
			panic("boom")
		case "left":
			return host.Leave()
		}
		close(returning)
		return nil
	}, host.Publishes(first, second), host.Forward(x.mem.To("third")), host.OnPanic(host.AsDrop))
	x.Publish("orders", memory.Text("dropped"), memory.Text("panics"), memory.Text("acked"))
	x.serve(t)
	receive(t, returning)
	x.held(t, "second", 3)
	if got := x.All("orders")[2].State; got != memory.Outstanding {
		t.Errorf("it is %v before all receipts are there", got)
	}
	release()
	x.settled(t, "orders")
	var got []string
	for _, m := range x.Published("first") {
		n, _ := m.Header("n")
		path, _ := m.Header("path")
		got = append(got, string(m.Payload)+n+path+m.DedupID)
	}
	got = append(append(got, x.texts("second")...), x.texts("third")...)
	want := []string{"acked0abid", "acked1abid", "acked2abid", `{"n":0}`, `{"n":1}`, `{"n":2}`, "acked"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestOneThatIsNotConfirmedRetriesTheDelivery: those that are confirmed stay
// sent, and the dead letter tells the cause as a *PublishError.
func TestOneThatIsNotConfirmedRetriesTheDelivery(t *testing.T) {
	x := newExchange(t, settings.Settings{}.With("orders", settings.KindA()))
	a, b := host.To[[]byte](x.Host, x.mem.To("a")), host.To[[]byte](x.Host, x.mem.To("b"))
	x.FailPublishes("b", memory.PublishFault{Status: memory.PublishRefused, Fault: &core.Fault{Code: core.FaultDenied, Message: "no entry"}})
	var attempts atomic.Int64
	host.Handle(x.mem.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		attempts.Add(1)
		return errors.Join(a.PublishWith(m, m.Value), b.PublishWith(m, m.Value))
	}, host.Publishes(a, b), host.MaxAttempts(2), host.DeadLetterTo(x.mem.To("dead")))
	x.Publish("orders", memory.Text("m"))
	x.serve(t)
	if err := x.Wait(x.ctx, "the dead letter", func(v memory.View) bool { return len(v.Published("dead")) == 1 }); err != nil {
		t.Fatal(err)
	}
	if got := attempts.Load(); got != 2 || len(x.texts("a")) != 2 || len(x.texts("b")) != 0 {
		t.Errorf("%d attempts, %v and %v sent", got, x.texts("a"), x.texts("b"))
	}
	typ, _ := x.Published("dead")[0].Header("x-longshore-error")
	reason, _ := x.Published("dead")[0].Header("x-longshore-reason")
	if typ != "*host.PublishError" || reason != "publish to b@mem: no entry" {
		t.Errorf("the dead letter says %q: %q", typ, reason)
	}
}

// TestNothingLeavesWhereOneCannot: an endpoint that went down after PublishWith
// keeps all of it from leaving.
func TestNothingLeavesWhereOneCannot(t *testing.T) {
	x := newExchange(t, settings.Settings{}.With("orders", settings.KindA()))
	q := newQueues()
	up := make(chan struct{})
	lives := 0
	q.connected = func(ctx context.Context, _ []byte) error {
		if lives++; lives == 1 {
			return nil
		}
		select {
		case <-up:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	other := attach(x.Host, "other", q)
	a, b := host.To[[]byte](x.Host, x.mem.To("a")), host.To[[]byte](x.Host, other.To("b"))
	var said atomic.Value
	var once sync.Once
	host.Handle(x.mem.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		if err := a.PublishWith(m, m.Value); err != nil {
			return err
		}
		if err := b.PublishWith(m, m.Value); err != nil {
			said.Store(err)
			return err
		}
		once.Do(func() {
			x.Crash("other")
			for x.Generation("other") != 0 {
				time.Sleep(time.Millisecond)
			}
		})
		return nil
	}, host.Publishes(a, b), host.Backoff(host.Constant(20*time.Millisecond)))
	x.serve(t)
	x.Publish("orders", memory.Text("m"))
	eventually(t, "PublishWith says that the endpoint is down", func() bool { return said.Load() != nil })
	if e := failure(t, said.Load().(error)); !errors.Is(e, host.ErrEndpointDown) || e.MaybeSent {
		t.Errorf("got %v", e)
	}
	if got := x.texts("a"); len(got) != 0 {
		t.Errorf("%v left although the other could not", got)
	}
	if n := len(x.log.lines("L-ERR", "publish to b@other: endpoint is down")); n == 0 {
		t.Error("no line says why the first attempt failed")
	}
	close(up)
	if err := x.Wait(x.ctx, "it leaves", func(v memory.View) bool { return len(v.Published("a")) == 1 }); err != nil {
		t.Fatal(err)
	}
	x.settled(t, "orders")
	if got := q.took("b"); len(got) != 1 {
		t.Errorf("%d came to the other", len(got))
	}
}

// TestPublishWithIsRefused: what cannot leave is an error at once.
func TestPublishWithIsRefused(t *testing.T) {
	set := settings.Settings{}.With("orders", settings.KindA()).WithDestination("small", settings.Destination{MaxBytes: 3})
	x := newExchange(t, set)
	out, small, undeclared := host.To[[]byte](x.Host, x.mem.To("out")), host.To[[]byte](x.Host, x.mem.To("small")), host.To[[]byte](x.Host, x.mem.To("undeclared"))
	odd := host.To[func()](newService().Host, x.mem.To("out")) // of a host that does not run
	kept := make(chan host.Incoming, 1)
	var got []string
	host.Handle(x.mem.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		for _, err := range []error{
			small.PublishWith(m, []byte("four")),
			undeclared.PublishWith(m, nil),
			out.PublishWith(m, nil, host.WithTimeout(time.Second)),
			out.PublishWith(m, nil, host.WithDelay(time.Second)),
			out.PublishWith(m, nil, host.WithHeader("\xff", "")),
			out.PublishWith(m, nil, host.WithOptions(map[string]int{"a": 1})),
			out.PublishWith(m.Clone(), nil),
			out.PublishWith(&host.Message[[]byte]{}, nil),
			out.PublishWith(nil, nil),
			odd.PublishWith(m, nil),
		} {
			got = append(got, failure(t, err).Err.Error())
		}
		kept <- m
		return nil
	}, host.Publishes(out, small, out))
	x.Publish("orders", memory.Text("m"))
	x.serve(t)
	m := receive(t, kept)
	x.settled(t, "orders")
	want := []string{
		"4 bytes of payload and headers are over the destination's limit of 3",
		"the subscription does not declare it; add the rule Publishes with this publisher to orders",
		"WithTimeout cannot be kept here",
		"it cannot delay",
		"is not UTF-8",
		"options: a: is no known field",
		"the message given to PublishWith is not in the hands of its handler",
		"the message given to PublishWith is not in the hands of its handler",
		"the message given to PublishWith is not in the hands of its handler",
		"the host does not run yet",
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("number %d: got %q, want %q", i, got[i], want[i])
		}
	}
	if err := out.PublishWith(m, nil); err == nil {
		t.Error("a message was held back with one whose handler has returned")
	}
	if n := len(x.texts("out")) + len(x.texts("small")); n != 0 {
		t.Errorf("%d messages left", n)
	}
}

// TestWhatOneDeliveryHoldsBackIsBounded, in messages and in bytes.
func TestWhatOneDeliveryHoldsBackIsBounded(t *testing.T) {
	x := newExchange(t, settings.Settings{}.With("orders", settings.KindA()))
	out := host.To[[]byte](x.Host, x.mem.To("out"))
	host.Handle(x.mem.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		most, size := 1024, 1
		if string(m.Value) == "bytes" {
			most, size = 8, 1<<20
		}
		var all sync.WaitGroup
		var held atomic.Int64
		for range 4 { // from several goroutines
			all.Go(func() {
				for out.PublishWith(m, make([]byte, size)) == nil {
					held.Add(1)
				}
			})
		}
		all.Wait()
		err := out.PublishWith(m, nil)
		if held.Load() != int64(most) || faultCode(t, err) != core.FaultExhausted {
			t.Errorf("%s: held back %d, then %v", m.Value, held.Load(), err)
		}
		return nil
	}, host.Publishes(out))
	x.Publish("orders", memory.Text("messages"), memory.Text("bytes"))
	x.serve(t)
	x.settled(t, "orders")
	if n := len(x.texts("out")); n != 1024+8 {
		t.Errorf("%d messages came", n)
	}
}

// TestMiddlewareThatRunsAHandlerAgain: what the run that failed held back does
// not leave, what the middleware itself held back does.
func TestMiddlewareThatRunsAHandlerAgain(t *testing.T) {
	x := newExchange(t, settings.Settings{}.With("orders", settings.KindA()))
	out := host.To[string](x.Host, x.mem.To("out"))
	runs := 0
	host.Handle(x.mem.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		runs++
		if err := out.PublishWith(m, fmt.Sprint("run ", runs)); err != nil {
			return err
		}
		switch runs {
		case 1:
			return errors.New("once more")
		case 2:
			panic("once more")
		}
		return nil
	}, host.Publishes(out), host.Middleware(func(next host.Next) host.Next {
		return func(ctx context.Context, m host.Incoming) (err error) {
			if err := out.PublishWith(m, "before"); err != nil {
				return err
			}
			for range 2 {
				func() {
					defer func() { _ = recover() }()
					_ = next(ctx, m)
				}()
			}
			return next(ctx, m)
		}
	}))
	x.Publish("orders", memory.Text("m"))
	x.serve(t)
	x.settled(t, "orders")
	if diff := cmp.Diff([]string{`"before"`, `"run 3"`}, x.texts("out")); diff != "" {
		t.Error(diff)
	}
}

// TestExplainShowsWhatIsHeldBack: the steps before the ack.
func TestExplainShowsWhatIsHeldBack(t *testing.T) {
	x := newExchange(t, settings.Settings{}.With("orders", settings.KindA()))
	out := host.To[[]byte](x.Host, x.mem.To("receipts"))
	host.Handle(x.mem.Subscription("orders"), acks, host.Publishes(out))
	tables, err := x.Explain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(tables[0]); !strings.Contains(text, "receipts@mem") {
		t.Errorf("it does not name the destination:\n%s", text)
	}
}

func TestMisuseOfPublishesIsFoundAtStart(t *testing.T) {
	s := newService()
	in := attach(s.Host, "in", newQueues())
	for i, rules := range [][]host.Rule{
		{host.Publishes()},
		{host.Publishes(nil)},
		{host.Publishes(target{})},
		{host.Publishes(target{in.To("a")}), host.Publishes(target{in.To("a")})},
		{host.Publishes(target{dest("nowhere", "a")})},
		{host.Publishes(target{dest("", "a")})}, // its own endpoint: right
	} {
		host.Handle(in.Subscription(fmt.Sprint("s", i)), acks, rules...)
	}
	var got []string
	for _, f := range startError(t, s).Findings {
		got = append(got, f.Subscription+" "+f.Option+" "+f.Message)
	}
	slices.Sort(got)
	want := []string{
		"s0 Publishes names no destination",
		"s1 Publishes number 1 is no publisher",
		"s2 Publishes names no destination",
		"s3 Publishes given twice",
		"s4 Publishes the endpoint of a@nowhere is not attached",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// target is a Target that is no publisher.
type target struct{ d core.Destination }

func (t target) Destination() core.Destination { return t.d }
