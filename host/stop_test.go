// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// TestStopWithHandlersInWork is E-07: handlers of 1 s, 4 s and one that never
// returns and is deaf to its context.
func TestStopWithHandlersInWork(t *testing.T) {
	for grace, want := range map[time.Duration]struct{ acked, left []string }{
		2 * time.Second: {[]string{"ack one"}, []string{"endless", "four"}},
		5 * time.Second: {[]string{"ack four", "ack one"}, []string{"endless"}},
	} {
		t.Run(grace.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueues()
				names := map[string]time.Duration{"one": time.Second, "four": 4 * time.Second, "endless": 0}
				s := newService(host.WithDrainLimit(grace))
				in := attach(s.Host, "in", q)
				release := make(chan struct{})
				for name, takes := range names {
					q.put(name, name)
					host.Handle(in.Subscription(name), func(context.Context, *host.Message[[]byte]) error {
						if takes == 0 {
							<-release
							return nil
						}
						time.Sleep(takes)
						return nil
					})
				}
				s.run(t)
				synctest.Wait()
				began := time.Now()
				s.stop()
				err := s.result(t)
				if took := time.Since(began); took > grace+500*time.Millisecond {
					t.Errorf("the stop took %v", took)
				}
				close(release)
				var e *host.AbandonedError
				if !errors.As(err, &e) {
					t.Fatalf("got %v, want an *AbandonedError", err)
				}
				var left []string
				for _, a := range e.Subscriptions {
					left = append(left, a.Subscription)
					if a.Endpoint != "in" || a.Handlers != 1 || len(a.Messages) != 1 || !strings.Contains(a.Messages[0], a.Subscription) {
						t.Errorf("listed %+v", a)
					}
				}
				if diff := cmp.Diff(want.left, left); diff != "" {
					t.Errorf("given up (-want +got):\n%s", diff)
				}
				var acked []string
				for name := range names {
					acked = append(acked, q.verdicts(name)...)
				}
				slices.Sort(acked)
				if diff := cmp.Diff(want.acked, acked); diff != "" {
					t.Errorf("settled (-want +got):\n%s", diff)
				}
				for _, name := range want.left {
					if got := q.left(name); len(got) != 1 {
						t.Errorf("%s has %v left, want its message", name, got)
					}
				}
				time.Sleep(10 * time.Second) // the handlers that were left behind end
			})
		})
	}
}

// TestStopIsNotAFailure is E-08: what a cancelled handler returns is no outcome.
func TestStopIsNotAFailure(t *testing.T) {
	for name, returns := range map[string]func(ctx context.Context) error{
		"its context's error": func(ctx context.Context) error { return ctx.Err() },
		"a retry of it":       func(ctx context.Context) error { return host.Retry(ctx.Err()) },
		"a drop":              func(ctx context.Context) error { return host.Drop(ctx.Err()) },
		"a panic":             func(ctx context.Context) error { panic(ctx.Err()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const grace = 5 * time.Second
				q := newQueues()
				s := newService(host.WithDrainLimit(grace))
				in := attach(s.Host, "in", q)
				var stopped, cancelled atomic.Int64
				for i := range 20 {
					name := fmt.Sprintf("s%02d", i)
					q.put(name, name)
					host.Handle(in.Subscription(name), func(ctx context.Context, m *host.Message[[]byte]) error {
						if m.Attempt() != 1 {
							t.Errorf("attempt %d", m.Attempt())
						}
						<-ctx.Done()
						cancelled.Store(time.Now().UnixNano())
						return returns(ctx)
					}, host.MaxAttempts(1), host.DeadLetterTo(in.To("dead")))
				}
				s.run(t)
				synctest.Wait()
				stopped.Store(time.Now().UnixNano())
				s.stop()
				var e *host.AbandonedError
				if err := s.result(t); !errors.As(err, &e) || len(e.Subscriptions) != 20 {
					t.Errorf("got %v, want the 20 handlers that were cancelled", err)
				} else if a := e.Subscriptions[7]; a.Cancelled != 1 || a.Handlers != 0 || len(a.Messages) != 1 {
					t.Errorf("listed %+v", a)
				}
				// The last tenth of the limit, at most a second.
				if after := time.Duration(cancelled.Load() - stopped.Load()); after != grace-grace/10 {
					t.Errorf("handlers were cancelled %v after the stop began", after)
				}
				if got := q.took("dead"); len(got) != 0 {
					t.Errorf("dead letters: %v", got)
				}
				for i := range 20 {
					if got := q.left(fmt.Sprintf("s%02d", i)); len(got) != 1 {
						t.Errorf("s%02d has %v left, want its message", i, got)
					}
				}
			})
		})
	}
}

func TestHandlersAreNotCancelledWithoutALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues()
		q.put("orders", "one")
		s := newService()
		host.Handle(attach(s.Host, "in", q).Subscription("orders"), func(ctx context.Context, _ *host.Message[[]byte]) error {
			select {
			case <-ctx.Done():
				t.Error("cancelled")
			case <-time.After(24 * time.Hour):
			}
			return nil
		})
		s.run(t)
		synctest.Wait()
		s.stop()
		synctest.Wait()
		if s.Ready() {
			t.Error("ready during a stop")
		}
		time.Sleep(25 * time.Hour)
		if err := <-s.done; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"ack one"}, q.verdicts("orders")); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s", diff)
		}
	})
}

func TestStopWithWaitingCopies(t *testing.T) {
	const delay = 10 * time.Minute
	for name, c := range map[string]struct {
		opts     []host.Option
		retains  core.Retention
		took     time.Duration // of the stop
		copied   bool
		journal  bool
		abandons int
	}{
		"S-GEN-41: waits without a limit":            {retains: core.RetainTransport, took: delay, copied: true},
		"S-GEN-42: cut off at the limit":             {opts: []host.Option{host.WithDrainLimit(5 * time.Second)}, retains: core.RetainTransport, took: 5 * time.Second, abandons: 1},
		"S-GEN-94: kept by the journal":              {retains: core.RetainTransport, journal: true},
		"S-ZMQ-34: read by this process alone":       {retains: core.RetainProcess, abandons: 1},
		"read by this process alone, with a journal": {retains: core.RetainProcess, journal: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueues()
				q.publishing.Retains = c.retains
				q.put("orders", "one")
				j := newJournal()
				if c.journal {
					c.opts = append(c.opts, host.WithJournal(j.open()))
				}
				s := newService(c.opts...)
				host.Handle(attach(s.Host, "in", q).Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
					if m.Attempt() > 1 {
						return nil
					}
					return host.RetryAfter(delay, nil)
				})
				s.run(t)
				synctest.Wait()
				if diff := cmp.Diff([]string{"ack one"}, q.verdicts("orders")); diff != "" {
					t.Errorf("verdicts (-want +got):\n%s", diff)
				}
				began := time.Now()
				s.stop()
				synctest.Wait()
				time.Sleep(2 * delay)
				err := <-s.done
				var e *host.AbandonedError
				switch {
				case c.abandons == 0 && err != nil:
					t.Error(err)
				case c.abandons > 0 && !errors.As(err, &e):
					t.Errorf("got %v, want an *AbandonedError", err)
				case c.abandons > 0:
					want := []host.Abandoned{{Endpoint: "in", Subscription: "orders", Copies: c.abandons}}
					if diff := cmp.Diff(want, e.Subscriptions); diff != "" {
						t.Errorf("abandoned (-want +got):\n%s", diff)
					}
					if lines := s.log.lines("level=WARN", "code=L-ABND", "subscription=orders"); len(lines) != 1 {
						t.Errorf("got %v, want one line", lines)
					}
				}
				if took := s.stopTook(began); took < c.took || took > c.took+time.Second {
					t.Errorf("the stop took %v, want %v", took, c.took)
				}
				if copies := len(q.took("orders")) - 1; copies > 0 != c.copied {
					t.Errorf("%d copies left", copies)
				}
				if rows := j.rows(); (len(rows) == 1) != c.journal {
					t.Errorf("the journal holds %v", rows)
				}
			})
		})
	}
}

func TestAbortEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues()
		q.put("orders", "one", "two")
		s := newService()
		host.Handle(attach(s.Host, "in", q).Subscription("orders"), func(ctx context.Context, _ *host.Message[[]byte]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		s.run(t)
		synctest.Wait()
		began := time.Now()
		s.stop() // waits: there is no limit
		synctest.Wait()
		s.Abort()
		s.Abort() // once more is harmless
		s.result(t)
		if took := time.Since(began); took > time.Second {
			t.Errorf("the abort took %v", took)
		}
		if left := q.left("orders"); len(left) != 2 {
			t.Errorf("the queue has %v left, want both", left)
		}
		if q.open() != 0 {
			t.Error("a connection was left open")
		}
	})
}

func TestPublishersWorkUntilHandlersAreDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues()
		q.put("orders", "one")
		s := newService(host.WithDrainLimit(time.Minute))
		in := attach(s.Host, "in", q)
		p := host.To[[]byte](s.Host, in.To("done"))
		host.Handle(in.Subscription("orders"), func(ctx context.Context, m *host.Message[[]byte]) error {
			time.Sleep(5 * time.Second)
			_, err := p.Publish(ctx, m.Value)
			return err
		})
		s.run(t)
		synctest.Wait()
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
		if got := q.took("done"); len(got) != 1 {
			t.Errorf("published %v", got)
		}
	})
}

// TestStopTellsOfDeliveriesWithoutAHandlerRun is S-05 and E-07 on a source that
// loses what it has delivered: nothing goes without a word.
func TestStopTellsOfDeliveriesWithoutAHandlerRun(t *testing.T) {
	for name, c := range map[string]struct {
		unsettled core.Unsettled
		unhandled int
	}{
		"that are lost":   {core.UnsettledLost, 7},
		"that come again": {core.UnsettledOnDisconnect, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueues()
				q.source = core.Capabilities{Ack: core.AckSingle, Address: "own", Unsettled: c.unsettled}
				for i := range 10 {
					q.put("orders", fmt.Sprint(i))
				}
				s := newService(host.WithDrainLimit(500 * time.Millisecond))
				in := attach(s.Host, "in", q)
				host.Handle(in.Subscription("orders"), func(ctx context.Context, _ *host.Message[[]byte]) error {
					select {
					case <-time.After(200 * time.Millisecond):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}, host.MaxAttempts(2), host.DeadLetterTo(in.To("dead")))
				s.run(t)
				synctest.Wait()
				s.stop()
				err := s.result(t)
				var e *host.AbandonedError
				if c.unhandled == 0 {
					if err != nil {
						t.Errorf("got %v: one handler had the time, the rest comes again", err)
					}
					return
				}
				if !errors.As(err, &e) || len(e.Subscriptions) != 1 {
					t.Fatalf("got %v, want an *AbandonedError", err)
				}
				if a := e.Subscriptions[0]; a.Cancelled != 1 || a.Unhandled != c.unhandled || len(a.Messages) != 1+c.unhandled {
					t.Errorf("listed %+v", a)
				}
				if got := q.verdicts("orders"); len(got) < 2 {
					t.Errorf("verdicts: %v", got)
				}
			})
		})
	}
}
