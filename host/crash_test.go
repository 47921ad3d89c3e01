// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// TestPluginDiesWhileAHandlerRuns is S-GEN-98: the handler runs on, its verdict
// is stale, and what returns is not copied as well.
func TestPluginDiesWhileAHandlerRuns(t *testing.T) {
	for name, c := range map[string]struct {
		unsettled core.Unsettled
		copies    int
		left      []string
	}{
		"and its deliveries return": {core.UnsettledOnDisconnect, 0, nil},
		"and they do not":           {core.UnsettledLost, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueues()
				q.source.Unsettled = c.unsettled
				q.put("orders", "one")
				s := newService(host.WithRestartBackoff(time.Second, time.Second))
				in := attach(s.Host, "in", q)
				var attempts []uint64
				crashed := make(chan struct{})
				host.Handle(in.Subscription("orders"), func(ctx context.Context, m *host.Message[[]byte]) error {
					attempts = append(attempts, m.Attempt())
					if len(attempts) == 1 {
						<-crashed
						if ctx.Err() != nil {
							t.Error("the handler was cancelled")
						}
						return host.Retry(nil)
					}
					return nil
				}, host.MaxAttempts(3))
				s.run(t)
				synctest.Wait()
				s.Crash("in")
				synctest.Wait()
				if s.Ready() {
					t.Error("ready without a plugin")
				}
				close(crashed)
				time.Sleep(time.Minute)
				if got := len(q.took("orders")) - 1; got != c.copies {
					t.Errorf("%d copies, want %d", got, c.copies)
				}
				if s.Generation("in") != 2 || !s.Ready() {
					t.Errorf("generation %d, ready %v", s.Generation("in"), s.Ready())
				}
				if c.copies == 0 {
					if diff := cmp.Diff([]uint64{1, 1}, attempts); diff != "" {
						t.Errorf("attempts (-want +got):\n%s", diff)
					}
				}
				s.stop()
				if err := s.result(t); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestBreakerEndsTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues()
		s := newService(host.WithBreaker(3, time.Minute), host.WithRestartBackoff(time.Millisecond, time.Millisecond))
		host.Handle(attach(s.Host, "in", q).Subscription("orders"), acks)
		s.run(t)
		for range 3 {
			synctest.Wait()
			time.Sleep(time.Second)
			s.Crash("in")
		}
		err := s.result(t)
		var e *host.EndpointError
		if !errors.As(err, &e) || e.Endpoint != "in" {
			t.Fatalf("got %v, want an *EndpointError", err)
		}
		if !strings.Contains(err.Error(), "crashed 3 times") {
			t.Errorf("%v does not count the crashes (L-03)", err)
		}
	})
}

func TestOptionalEndpointOnlyTurnsReadinessOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, other := newQueues(), newQueues()
		s := newService(host.WithBreaker(2, time.Minute), host.WithRestartBackoff(time.Millisecond, time.Millisecond))
		host.Handle(attach(s.Host, "main", other).Subscription("orders"), acks)
		host.Handle(s.Endpoint("side", host.Plugin{InProcess: q, Optional: true}, nil).Subscription("orders"), acks)
		s.run(t)
		for range 2 {
			synctest.Wait()
			time.Sleep(time.Second)
			s.Crash("side")
		}
		synctest.Wait()
		if s.Ready() {
			t.Error("ready with an open breaker")
		}
		other.put("orders", "one")
		synctest.Wait()
		if diff := cmp.Diff([]string{"ack one"}, other.verdicts("orders")); diff != "" {
			t.Errorf("the other endpoint works on (-want +got):\n%s", diff)
		}
		time.Sleep(2 * time.Minute) // one try a minute
		if !s.Ready() {
			t.Error("not ready again")
		}
		q.put("orders", "two")
		synctest.Wait()
		if diff := cmp.Diff([]string{"ack two"}, q.verdicts("orders")); diff != "" {
			t.Errorf("it reads again (-want +got):\n%s", diff)
		}
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
	})
}

func TestOptionalEndpointThatIsDownAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues()
		tries := 0
		q.connected = func(context.Context, []byte) error {
			if tries++; tries < 3 {
				return unavailable("no broker")
			}
			return nil
		}
		s := newService(host.WithRestartBackoff(time.Second, time.Second))
		host.Handle(s.Endpoint("side", host.Plugin{InProcess: q, Optional: true}, nil).Subscription("orders"), acks)
		q.put("orders", "one")
		s.run(t)
		synctest.Wait()
		if s.Ready() {
			t.Error("ready without the broker")
		}
		time.Sleep(time.Minute)
		if !s.Ready() {
			t.Error("not ready with the broker")
		}
		if diff := cmp.Diff([]string{"ack one"}, q.verdicts("orders")); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s", diff)
		}
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
	})
}

func TestEndpointThatNeverRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues()
		q.neverRestart = true
		q.source.Unsettled = core.UnsettledLost
		q.put("orders", "one", "two", "three")
		s := newService(host.WithDrainLimit(time.Second))
		n := 0
		host.Handle(attach(s.Host, "in", q).Subscription("orders"), func(ctx context.Context, _ *host.Message[[]byte]) error {
			if n++; n == 2 {
				<-ctx.Done()
			}
			return nil
		})
		s.run(t)
		synctest.Wait()
		s.Crash("in")
		err := s.result(t)
		var e *host.EndpointError
		if !errors.As(err, &e) {
			t.Fatalf("got %v, want an *EndpointError", err)
		}
		if e.Endpoint != "in" || e.Received != 3 || e.Unsettled != 2 || e.Position != "3" {
			t.Errorf("got %+v, want 3 received, 2 unsettled, the last one at 3", e)
		}
	})
}

func TestSubscriptionThatEndsWithAFault(t *testing.T) {
	for name, c := range map[string]struct {
		fault   *core.Fault
		reopens bool
	}{
		"for good":    {&core.Fault{Code: core.FaultClosed, Message: "the next stage is gone"}, false},
		"for a while": {&core.Fault{Code: core.FaultUnavailable, Message: "rebalanced", Transient: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueues()
				s := newService()
				in := attach(s.Host, "in", q)
				host.Handle(in.Subscription("orders"), acks)
				s.run(t)
				synctest.Wait()
				q.fail("orders", c.fault)
				synctest.Wait()
				if !c.reopens {
					err := s.result(t)
					var e *host.EndpointError
					var f *core.Fault
					if !errors.As(err, &e) || e.Subscription != "orders" || !errors.As(err, &f) || f.Code != core.FaultClosed {
						t.Errorf("got %v, want an *EndpointError of the subscription", err)
					}
					return
				}
				q.put("orders", "one")
				time.Sleep(time.Minute)
				if diff := cmp.Diff([]string{"ack one"}, q.verdicts("orders")); diff != "" {
					t.Errorf("verdicts (-want +got):\n%s", diff)
				}
				if s.Generation("in") != 1 || !s.Ready() {
					t.Errorf("generation %d, ready %v; want the first one to serve", s.Generation("in"), s.Ready())
				}
				s.stop()
				if err := s.result(t); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestResumeBytesReachTheNextGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues()
		var resumes []string
		q.connected = func(_ context.Context, resume []byte) error {
			resumes = append(resumes, string(resume))
			return nil
		}
		q.reports = []byte("session 7")
		s := newService()
		host.Handle(attach(s.Host, "in", q).Subscription("orders"), acks)
		s.run(t)
		time.Sleep(time.Second)
		s.Crash("in")
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"", "session 7"}, resumes); diff != "" {
			t.Errorf("resume bytes (-want +got):\n%s", diff)
		}
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
	})
}

// TestSourcesThatEndedAreNotReadAgain makes sure that a replay does not run
// twice because its plugin died after it.
func TestSourcesThatEndedAreNotReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues()
		q.put("orders", "one")
		q.end("orders")
		s := newService(host.StayUp())
		host.Handle(attach(s.Host, "in", q).Subscription("orders"), acks)
		s.run(t)
		synctest.Wait()
		if !s.Ready() {
			t.Error("not ready after the end of a source")
		}
		s.Crash("in")
		time.Sleep(time.Minute)
		if got := q.subscriptions("orders"); got != 1 {
			t.Errorf("subscribed %d times", got)
		}
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
	})
}

// TestSourcesThatEndedWithWorkLeftAreReadAgain is the other half: what was in
// work when the plugin died returns, and somebody must be there to read it.
func TestSourcesThatEndedWithWorkLeftAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues()
		q.put("orders", "one")
		q.end("orders")
		s := newService()
		crashed := make(chan struct{})
		runs := 0
		host.Handle(attach(s.Host, "in", q).Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
			if runs++; runs == 1 {
				<-crashed
			}
			return nil
		})
		s.run(t)
		synctest.Wait()
		s.Crash("in")
		synctest.Wait()
		close(crashed)
		if err := s.result(t); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"ack one"}, q.verdicts("orders")); diff != "" || runs != 2 {
			t.Errorf("%d runs; verdicts (-want +got):\n%s", runs, diff)
		}
	})
}

func TestLostConnectionTurnsReadinessOff(t *testing.T) {
	b := newBench(t)
	s := b.service()
	host.Handle(b.attach(s.Host, "mem", b.Settings.With("orders", settings.KindA())).Subscription("orders"), acks)
	s.serve(t)
	b.Down()
	eventually(t, "not ready without the broker", func() bool { return !s.Ready() })
	b.Up()
	eventually(t, "ready again", s.Ready)
	b.Publish("orders", memory.Text("one"))
	b.must(t, b.WaitSettled(b.ctx, "orders", 1))
	if s.Generation("mem") != 1 {
		t.Errorf("generation %d; the plugin reconnects by itself", s.Generation("mem"))
	}
	s.stop()
	if err := s.result(t); err != nil {
		t.Error(err)
	}
}

// TestWaitingCopiesOutliveThePlugin makes a copy due while its endpoint is
// down: it leaves with the next generation.
func TestWaitingCopiesOutliveThePlugin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues()
		q.put("orders", "one")
		s := newService(host.WithRestartBackoff(5*time.Second, 5*time.Second))
		host.Handle(attach(s.Host, "in", q).Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
			if m.Attempt() == 1 {
				return host.RetryAfter(time.Second, nil)
			}
			return nil
		})
		s.run(t)
		time.Sleep(500 * time.Millisecond)
		s.Crash("in")
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"ack one", "ack one"}, q.verdicts("orders")); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s", diff)
		}
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
	})
}
