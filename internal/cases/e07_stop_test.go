// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// inWork are three handlers that are in work when a stop begins. One of them ends
// then, one does where the stop has the longer of two limits, and one never does.
// All of them are deaf to their context.
type inWork struct {
	running  chan string
	stopping chan struct{} // closed when the stop has begun
	release  chan struct{} // closed with the test
}

// graces are the limits of stops, and what is left when they are over.
var graces = map[time.Duration][]string{3 * time.Second: {"endless", "long"}, 8 * time.Second: {"endless"}}

// works are the names of those handlers.
var works = []string{"short", "long", "endless"}

func newInWork(t *testing.T) *inWork {
	w := &inWork{make(chan string, len(works)), make(chan struct{}), make(chan struct{})}
	t.Cleanup(func() { close(w.release) })
	return w
}

// handles is the handler of one of them.
func (w *inWork) handles(name string, left []string) {
	w.running <- name
	if slices.Contains(left, name) {
		<-w.release
	} else {
		<-w.stopping
	}
}

// stops stops a service when all of them are in work, and returns what that came
// to. It does not return much later than its limit.
func (w *inWork) stops(s *service, grace time.Duration) error {
	s.t.Helper()
	for range works {
		<-w.running
	}
	began := time.Now()
	s.stop()
	close(w.stopping)
	err := s.ends()
	if took := s.end.Sub(began); took > grace+late {
		s.t.Errorf("the stop took %v", took)
	}
	return err
}

// E-07: three handlers, of which one has ended when the limit of a stop is over,
// or two. A stop returns soon after its limit; what finished is acked, the rest is
// not and is listed by subscription and message.
func TestE07HandlerThatNeverReturns(t *testing.T) {
	t.Parallel()
	for grace, want := range graces {
		t.Run(grace.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := newService(t, host.WithDrainLimit(grace))
			set, w := b.Settings, newInWork(t)
			for _, name := range works {
				set = set.With(name, settings.KindA())
			}
			in := b.attach(s, "mem", set)
			for _, name := range works {
				host.Handle(in.Subscription(name), func(context.Context, *host.Message[[]byte]) error {
					w.handles(name, want)
					return nil
				})
				b.Publish(name, memory.Text("message of "+name))
			}
			s.serve()
			err := w.stops(s, grace)
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
				b.wait("the message of "+a.Subscription+" is back", func(v memory.View) bool { return v.Account(a.Subscription).Queued == 1 })
			}
			if diff := cmp.Diff(want, left); diff != "" {
				t.Errorf("given up (-want +got):\n%s", diff)
			}
			if a := b.Account(); a.Acked != len(works)-len(want) || a.Lost != 0 {
				t.Errorf("account: %v, want %d acked", a, len(works)-len(want))
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
			// What it cancelled is listed, so that people learn of it; no more than that,
			// unless the limit was over before all of them had returned.
			var cut *host.AbandonedError
			if err := first.ends(); !errors.As(err, &cut) || len(cut.Subscriptions) != handlers {
				t.Fatalf("got %v, want an *AbandonedError with %d subscriptions", err, handlers)
			}
			for _, a := range cut.Subscriptions {
				if first.end.Sub(began) > grace && a.Handlers == 1 {
					a.Handlers, a.Cancelled = 0, 1
				}
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
