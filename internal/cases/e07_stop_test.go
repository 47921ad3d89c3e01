// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// E-07: three handlers, of 1 s, 4 s, and one without an end that is deaf to its
// context. A stop returns half a second after its limit at the latest; what
// finished is acked, the rest is not and is listed by subscription and message.
func TestE07HandlerThatNeverReturns(t *testing.T) {
	t.Parallel()
	for grace, want := range map[time.Duration]struct {
		acked int
		left  []string
	}{
		2 * time.Second: {1, []string{"endless", "four"}},
		5 * time.Second: {2, []string{"endless"}},
	} {
		t.Run(grace.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := newService(t, host.WithDrainLimit(grace))
			release := make(chan struct{})
			t.Cleanup(func() { close(release) })
			takes := map[string]time.Duration{"one": time.Second, "four": 4 * time.Second, "endless": 0}
			set, running := b.Settings, make(chan string, len(takes))
			for name := range takes {
				set = set.With(name, settings.KindA())
			}
			in := b.attach(s, "mem", set)
			var begun time.Time // of the handlers
			for name, d := range takes {
				host.Handle(in.Subscription(name), func(context.Context, *host.Message[[]byte]) error {
					running <- name
					var timer <-chan time.Time
					if d > 0 {
						timer = time.After(d)
					}
					select { // deaf to its context
					case <-timer:
					case <-release:
					}
					return nil
				})
				b.Publish(name, memory.Text("message of "+name))
			}
			s.serve()
			for range takes {
				<-running
			}
			begun = time.Now()
			s.stop()
			err := s.ends()
			if took := s.end.Sub(begun); took > grace+late {
				t.Errorf("the stop took %v", took)
			}
			var e *host.AbandonedError
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *AbandonedError", err)
			}
			var left []string
			for _, a := range e.Subscriptions {
				left = append(left, a.Subscription)
				if a.Endpoint != "mem" || a.Handlers != 1 || len(a.Messages) != 1 || !strings.Contains(err.Error(), a.Messages[0]) {
					t.Errorf("listed: %+v", a)
				}
				if b.Account(a.Subscription).Queued != 1 {
					t.Errorf("%s: %v, want its message to be back", a.Subscription, b.Account(a.Subscription))
				}
			}
			if diff := cmp.Diff(want.left, left); diff != "" {
				t.Errorf("given up (-want +got):\n%s", diff)
			}
			if a := b.Account(); a.Acked != want.acked || a.Lost != 0 {
				t.Errorf("account: %v, want %d acked", a, want.acked)
			}
		})
	}
}

// E-08: twenty handlers that wait on their context and return its error as a
// retry, on their last attempt and with a dead letter. They are cancelled when
// the limit is nearly over; the dead letter stays empty, and all of them come
// again: at attempt 1, or, where the source counts deliveries by itself, as
// that says; it gets one attempt more here, since for it the first is spent.
func TestE08StopIsNoFailure(t *testing.T) {
	t.Parallel()
	const (
		grace    = 5 * time.Second
		handlers = 20
	)
	sources := map[string]core.Capabilities{"A": settings.KindA(), "C": settings.KindC(), "M": settings.KindM(), "U": settings.KindU()}
	for name, caps := range sources {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			set := b.Settings.With(settings.Rest, caps)
			set.Session = "kept"
			attempts, running := newTally(), make(chan struct{}, handlers)
			limit, again := 1, uint64(1)
			if !copies(caps) {
				limit, again = 2, 2
			}
			round := func(limit int, handle host.Handler[[]byte]) *service {
				s := newService(t, host.WithDrainLimit(grace))
				in := b.attach(s, "mem", set)
				for i := range handlers {
					host.Handle(in.Subscription(fmt.Sprintf("s%02d", i)), handle, host.MaxAttempts(limit), host.DeadLetterTo(in.To("graves")))
				}
				s.serve()
				return s
			}
			cancelled := make(chan time.Time, handlers)
			first := round(1, func(ctx context.Context, m *host.Message[[]byte]) error {
				attempts.ran("first", m.Attempt())
				running <- struct{}{}
				<-ctx.Done()
				cancelled <- time.Now()
				return host.Retry(ctx.Err())
			})
			for i := range handlers {
				b.Publish(fmt.Sprintf("s%02d", i), memory.Text(fmt.Sprint(i)))
			}
			for range handlers {
				<-running
			}
			began := time.Now()
			first.stop()
			// What it cancelled is listed, so that people learn of it; no more than that.
			var cut *host.AbandonedError
			if err := first.ends(); !errors.As(err, &cut) || len(cut.Subscriptions) != handlers {
				t.Fatalf("got %v, want an *AbandonedError with %d subscriptions", err, handlers)
			}
			for _, a := range cut.Subscriptions {
				want := host.Abandoned{Endpoint: "mem", Subscription: a.Subscription, Cancelled: 1, Messages: a.Messages}
				if diff := cmp.Diff(want, a); diff != "" || len(a.Messages) != 1 {
					t.Errorf("listed (-want +got):\n%s", diff)
				}
			}
			if took := first.end.Sub(began); took > grace+late {
				t.Errorf("the stop took %v", took)
			}
			for range handlers {
				if after := (<-cancelled).Sub(began); after < grace*9/10-50*time.Millisecond || after > grace+late {
					t.Errorf("cancelled %v after the stop began, want the last tenth of %v", after, grace)
				}
			}
			a := b.Account()
			if len(b.Published("graves")) != 0 || a.Acked+a.Rejected+a.DeadLettered != 0 {
				t.Errorf("after the stop: %v", a)
			}
			for _, code := range []string{"L-ERR", "L-CAP-DL", "L-LOST", "L-UNS"} {
				if lines := first.log.of(code, ""); len(lines) > 0 {
					t.Errorf("the log has %v", lines[0])
				}
			}
			if caps.Ack == core.AckNone {
				return // they were this process's alone, and Explain says so
			}
			if a.Queued+a.Outstanding != handlers || a.Lost != 0 {
				t.Errorf("after the stop: %v, want all of them to be kept", a)
			}
			second := round(limit, func(_ context.Context, m *host.Message[[]byte]) error {
				attempts.ran("second", m.Attempt())
				return nil
			})
			b.must(b.WaitSettled(b.ctx, "s19", 1))
			b.must(b.WaitIdle(b.ctx))
			second.stops()
			if a := b.Account(); a.Acked != handlers {
				t.Errorf("after the second run: %v", a)
			}
			for _, n := range attempts.attempts("second") {
				if n != again {
					t.Errorf("came again at attempt %d, want %d", n, again)
				}
			}
		})
	}
}
