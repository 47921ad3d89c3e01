// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// hostChild names the file that a child process serves until it is killed.
const hostChild = "LONGSHORE_TEST_HOST_CHILD"

// received waits until a service has so many deliveries.
func (s *service) received(n uint64) {
	s.t.Helper()
	s.Eventually("the window is full", func() bool { return s.counters().Received >= n })
}

// counters are those of a service's one subscription.
func (s *service) counters() host.Counters {
	return s.Health().Endpoints[0].Subscriptions[0].Counters
}

// stopping tells a service to stop and waits until it has let go of what no
// handler has begun.
func (s *service) stopping() {
	before := s.counters().Released
	s.Cancel()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for s.Health().State != host.StateStopped && s.counters().Released == before {
		<-look.C
	}
}

// What waits in the window of a service is no attempt when that is stopped in
// order, however often and however low the cap.
func TestGroupOverRestarts(t *testing.T) {
	const records, window, restarts = 1500, 1024, 5
	path := newPath(t)
	refill(t, path, records)
	before := contents(t, path)
	o := settings.Subscription{Group: "billing", Replay: true}
	acked := map[string]bool{}
	for range restarts {
		release := make(chan struct{})
		s := newService(t, settings.Settings{Path: path})
		s.Handle(s.read("orders", o), func(*host.Message[[]byte]) error {
			<-release
			return nil
		}, host.MaxAttempts(3), host.DeadLetterTo(s.in.To("dead")))
		s.Start()
		s.received(window)
		acked[s.Ran(1)[0]] = true
		s.stopping()
		s.settles(release)
		servicetest.Expect(t, "file", contents(t, path), before...)
		s.Log.Silent(t)
		if n := s.counters(); n.Released < window-2 {
			t.Errorf("counters %+v", n)
		}
		for _, r := range s.Rest() { // begun before its stop
			acked[r] = true
		}
	}

	s := newService(t, settings.Settings{Path: path})
	s.Handle(s.read("orders", o), servicetest.Always(nil), host.MaxAttempts(3), host.DeadLetterTo(s.in.To("dead")))
	s.Launch()
	for _, r := range s.Handled(records - len(acked)) {
		if acked[r] || !strings.HasPrefix(r, "orders 1 ") {
			t.Errorf("ran %s", r)
		}
	}
	servicetest.Expect(t, "file", s.ended(), before...)
	s.Log.Silent(t)
}

// settles lets handlers return and waits for the end without an error.
func (s *service) settles(release chan struct{}) {
	s.t.Helper()
	close(release)
	if err := s.Wait(); err != nil {
		s.t.Errorf("the host ended with %v\n%s", err, s.Log)
	}
}

// What a handler was given counts, however a stop ends it, unless the handler
// has put it off; what waited behind it does not.
func TestGroupCountsWhatHandlersWereGiven(t *testing.T) {
	for name, tt := range map[string]struct {
		limit  time.Duration // of the stop
		handle func(ctx context.Context, end <-chan struct{}) error
		next   int
	}{
		"left": {0, func(context.Context, <-chan struct{}) error { return host.Leave() }, 2},
		"cancelled at the limit": {time.Second, func(ctx context.Context, _ <-chan struct{}) error {
			<-ctx.Done()
			return ctx.Err()
		}, 2},
		"not returned at the limit": {time.Second, func(_ context.Context, end <-chan struct{}) error {
			<-end
			return nil
		}, 2},
		"to be retried later": {0, func(context.Context, <-chan struct{}) error { return host.RetryAfter(time.Hour, nil) }, 2},
		"put off":             {0, func(context.Context, <-chan struct{}) error { return host.Snooze(time.Minute, nil) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			refill(t, path, 3)
			end, begun, hold := make(chan struct{}), make(chan struct{}, 3), make(chan struct{})
			s := newService(t, settings.Settings{Path: path}, host.WithDrainLimit(tt.limit))
			host.Handle(s.read("orders", billing), func(ctx context.Context, m *host.Message[[]byte]) error {
				begun <- struct{}{}
				if string(m.Value) == "1" {
					return tt.handle(ctx, end)
				}
				<-hold // those behind it are not begun
				return nil
			}, host.MaxAttempts(9), host.SnoozeLimit(9, time.Hour), host.DeadLetterTo(s.in.To("dead")))
			s.Start()
			s.received(3)
			<-begun
			want := []string{fmt.Sprintf("1 %d", tt.next), "2 1", "3 1"}
			if tt.limit == 0 {
				<-begun // the second one, which is acked
				want = []string{want[0], want[2]}
			}
			s.stopping()
			close(hold)
			err := s.Wait()
			close(end)
			if abandoned := (*host.AbandonedError)(nil); errors.As(err, &abandoned) != (tt.limit > 0) {
				t.Errorf("the host ended with %v\n%s", err, s.Log)
			}
			b := open(t, settings.Settings{Path: path}, pluginapi.Usage{})
			sub := b.subscribe("orders", billing)
			b.wants(sub, want...)
			b.closeSub(sub)
		})
	}
}

// serveUntilKilled serves a file with a handler that does not return, and says
// when three deliveries are there.
func serveUntilKilled(path string) {
	h := host.New()
	in := h.Endpoint("in", host.Plugin{Name: "file", Path: os.Getenv(hostChild + "_PLUGIN")}, settings.Settings{Path: path})
	host.Handle(in.Subscription("orders", host.Options(billing)), func(context.Context, *host.Message[[]byte]) error {
		for look := time.Tick(time.Millisecond); h.Health().Endpoints[0].Subscriptions[0].Counters.Received < 3; {
			<-look
		}
		fmt.Println("received")
		select {}
	})
	check(h.Run(context.Background()))
}

// Behind a kill of the host everything that was handed out counts: nobody knows
// what was begun.
func TestGroupWhoseHostIsKilled(t *testing.T) {
	path := newPath(t)
	refill(t, path, 3)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), hostChild+"="+path, hostChild+"_PLUGIN="+pluginPath(t))
	child.Stderr = os.Stderr
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if n, err := stdout.Read(make([]byte, 100)); err != nil || n == 0 {
		t.Fatalf("read %d bytes: %v", n, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	b := open(t, settings.Settings{Path: path}, pluginapi.Usage{})
	s := b.subscribe("orders", billing) // when the plugin has let go of it
	b.wants(s, "1 2", "2 2", "3 2")
	b.closeSub(s)
}

// An end in order takes back what had no verdict, and leaves what is held.
func TestGroupFinishes(t *testing.T) {
	b := open(t, settings.Settings{Path: newPath(t)}, writes("orders"))
	b.put("orders", "1", "2", "3", "4", "5")
	s := b.subscribe("orders", billing)
	ds := b.wants(s, "1 1", "2 1", "3 1", "4 1", "5 1")
	b.settle(s, core.VerdictAck, ds[0])
	delayed := pluginapi.Verdict{Handle: ds[1].Handle, Kind: core.VerdictRequeue, Delay: time.Hour}
	if r := s.Settle(b.ctx, []pluginapi.Verdict{delayed}); r[0].Status != pluginapi.ResultDone {
		t.Fatalf("delayed requeue: %v", r)
	}
	b.settle(s, core.VerdictRequeue, ds[2])
	s.(pluginapi.Releaser).Release([]any{ds[3].Handle})
	finish := func() {
		s.(pluginapi.Finisher).Finish(b.ctx, nil)
		b.closeSub(s)
	}
	finish()
	for range 3 {
		s = b.subscribe("orders", billing)
		b.wants(s, "2 2", "3 2", "4 2", "5 1")
		finish()
	}
	s = b.subscribe("orders", billing)
	ds = b.wants(s, "2 2", "3 2", "4 2", "5 1")
	b.settle(s, core.VerdictAck, ds...)
	finish()
	s = b.subscribe("orders", billing)
	b.quiet(s)
	finish()
}
