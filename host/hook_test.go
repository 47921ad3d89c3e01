// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// tale collects what hooks are told.
type tale struct {
	mu    sync.Mutex
	lines []string
}

func (t *tale) add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

// all returns it sorted: settlements end in any order.
func (t *tale) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := slices.Clone(t.lines)
	slices.Sort(out)
	return out
}

func (t *tale) settled(_ context.Context, s host.Settled) {
	t.add("settled %s %d %v %v %v", s.Message.Payload, s.Attempt, s.Outcome.Kind, s.Result, s.Err)
}

func (t *tale) failed(_ context.Context, x host.Failure) {
	t.add("failed %s %d %v %v %s", x.Message.Payload, x.Attempt, x.Result, x.Err, x.DeadLetter.Name)
}

// does is a handler that does what the payload says.
func does(_ context.Context, m *host.Message[[]byte]) error {
	switch string(m.Value) {
	case "retry":
		return errors.New("no")
	case "drop":
		return host.Drop(errors.New("bad"))
	case "dead":
		return host.DeadLetter(nil)
	case "leave":
		return host.Leave()
	case "panic":
		panic("ouch")
	default:
		return nil
	}
}

// S-GEN-01, S-GEN-66: each hook runs once, after the settle, and not for what was
// left unsettled (S-GEN-45, 69).
func TestHooks(t *testing.T) {
	in := newQueues()
	s := newService()
	var told tale
	host.Handle(attach(s.Host, "in", in).Subscription("orders"), does, host.MaxAttempts(2), host.DeadLetterTo(dest("in", "q")),
		host.AfterSettle(told.settled), host.OnFinalFailure(told.failed))
	s.serve(t)
	in.put("orders", "fine", "retry", "drop", "dead", "leave", "panic")
	want := []string{
		"failed dead 1 dead-lettered <nil> q",
		"failed drop 1 dropped bad ",
		"failed panic 2 dead-lettered handler panicked: ouch q",
		"failed retry 2 dead-lettered no q",
		"settled dead 1 dead-letter dead-lettered <nil>",
		"settled drop 1 drop dropped bad",
		"settled fine 1 ack acked <nil>",
		"settled panic 1 retry retried handler panicked: ouch",
		"settled panic 2 retry dead-lettered handler panicked: ouch",
		"settled retry 1 retry retried no",
		"settled retry 2 retry dead-lettered no",
	}
	eventually(t, "all is told", func() bool { return len(told.all()) >= len(want) })
	if diff := cmp.Diff(want, told.all()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// A message that is refused for its attempts without a run is given up as well
// (S-GEN-96), and so is one that its source rejects (S-GEN-06).
func TestFinalFailuresWithoutDeadLetter(t *testing.T) {
	in := newQueues()
	in.source.Counts = core.CountNative
	s := newService()
	var told tale
	host.Handle(attach(s.Host, "in", in).Subscription("orders"), does, host.MaxAttempts(2), host.OnFinalFailure(told.failed))
	in.mu.Lock()
	x := in.queue("orders")
	x.ready = append(x.ready, &item{m: core.Message{Name: "orders", Payload: []byte("late")}, count: 7})
	in.mu.Unlock()
	s.serve(t)
	in.put("orders", "retry")
	want := []string{"failed late 8 dropped <nil> ", "failed retry 2 dropped no "}
	eventually(t, "both are told", func() bool { return len(told.all()) >= len(want) })
	if diff := cmp.Diff(want, told.all()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// What a hook throws is logged and does not keep it from the next message.
func TestHooksThatThrow(t *testing.T) {
	in := newQueues()
	s := newService()
	var told tale
	host.Handle(attach(s.Host, "in", in).Subscription("orders"), does,
		host.AfterSettle(func(ctx context.Context, x host.Settled) {
			told.settled(ctx, x)
			switch string(x.Message.Payload) {
			case "one":
				panic("ouch")
			case "two":
				runtime.Goexit()
			}
		}))
	s.serve(t)
	in.put("orders", "one", "two", "three")
	eventually(t, "all are told", func() bool { return len(told.all()) == 3 })
	eventually(t, "both are logged", func() bool {
		return len(s.log.lines("level=ERROR", "hook panicked", "panic=ouch", "rule=AfterSettle", "subscription=orders")) == 1 &&
			len(s.log.lines("level=ERROR", "runtime.Goexit")) == 1
	})
	s.stop()
	if err := s.result(t); err != nil {
		t.Errorf("the host stops with %v", err)
	}
}

// A stop waits for hooks.
func TestStopWaitsForHooks(t *testing.T) {
	in := newQueues()
	s := newService()
	began, release := make(chan struct{}), make(chan struct{})
	var told tale
	host.Handle(attach(s.Host, "in", in).Subscription("orders"), does,
		host.AfterSettle(func(ctx context.Context, x host.Settled) {
			if string(x.Message.Payload) == "one" {
				close(began)
				<-release
			}
			if ctx.Err() != nil {
				t.Error("the hook's context has ended")
			}
			told.settled(ctx, x)
		}))
	s.serve(t)
	in.put("orders", "one", "two")
	receive(t, began)
	eventually(t, "both are settled", func() bool { return len(in.verdicts("orders")) == 2 })
	s.stop()
	eventually(t, "the stop has begun", func() bool { return !s.Ready() })
	close(release)
	if err := s.result(t); err != nil {
		t.Errorf("the host stops with %v", err)
	}
	if got := len(told.all()); got != 2 {
		t.Errorf("%d were told, want 2", got)
	}
}

// A hook that does not return cannot hold up a stop beyond its limit, and is
// named.
func TestStopLeavesHooksBehind(t *testing.T) {
	synctest.Test(t, testStopLeavesHooksBehind)
}

func testStopLeavesHooksBehind(t *testing.T) {
	in := newQueues()
	s := newService(host.WithDrainLimit(50 * time.Millisecond))
	began, release := make(chan context.Context, 1), make(chan struct{})
	t.Cleanup(func() { close(release) })
	host.Handle(attach(s.Host, "in", in).Subscription("orders"), does,
		host.AfterSettle(func(ctx context.Context, _ host.Settled) {
			began <- ctx
			<-release
		}))
	s.serve(t)
	in.put("orders", "one", "two", "three")
	ctx := receive(t, began)
	synctest.Wait()
	s.stop()
	var e *host.AbandonedError
	if err := s.result(t); !errors.As(err, &e) || len(e.Subscriptions) != 1 || e.Subscriptions[0].Hooks != 3 {
		t.Errorf("got %v, want three hooks of one subscription", err)
	}
	receive(t, ctx.Done())
}

// S-GEN-66: a hook given twice is refused, with both places.
func TestHooksGivenTwice(t *testing.T) {
	s := newService()
	var told tale
	host.Handle(attach(s.Host, "in", newQueues()).Subscription("orders"), does,
		host.AfterSettle(told.settled), host.AfterSettle(told.settled),
		host.OnFinalFailure(told.failed), host.OnFinalFailure(nil))
	e := startError(t, s)
	if diff := cmp.Diff([]string{"orders: AfterSettle", "orders: OnFinalFailure"}, options(e)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	for _, f := range e.Findings {
		if len(f.Places) != 2 {
			t.Errorf("%v names %v, want both places", f, f.Places)
		}
	}
}
