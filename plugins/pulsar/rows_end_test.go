// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// killPlugin ends a service's plugin as kill -9 does.
func (s *service) killPlugin() {
	s.t.Helper()
	var pid int
	lines := s.Log.Lines("plugin process started")
	_, rest, _ := strings.Cut(lines[len(lines)-1], " pid=")
	if _, err := fmt.Sscan(rest, &pid); err != nil || pid <= 1 {
		s.t.Fatalf("no process in %q: %v", lines, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
}

// A delivery whose process is killed while its handler runs goes to another
// consumer, as the attempt that it was.
func TestS_PUL_21(t *testing.T) {
	t.Parallel()
	dying := newService(t, rowOptions{})
	began, let := make(chan struct{}, 1), make(chan struct{})
	host.Handle(dying.reads("t", settings.SubscribeOptions{}), func(context.Context, *host.Message[[]byte]) error {
		select {
		case began <- struct{}{}:
		default:
		}
		<-let
		return nil
	})
	dying.Start()
	dying.put("t", texts("x")...)
	<-began
	other := newService(t, rowOptions{base: dying.base})
	other.Handle(other.reads("t", settings.SubscribeOptions{}), servicetest.Always(nil))
	other.Start()
	other.b.AwaitConsumers(other.topic("t"), sub, 2)
	dying.killPlugin()
	other.handled(1, 1, "x")
	other.left(0)
	close(let)
	dying.Stop()
	other.stop(0)
}

// A handler that takes longer than ack_timeout: what has come again meanwhile runs
// once more, and both acks are taken.
func TestS_PUL_22(t *testing.T) {
	t.Parallel()
	const limit = 3 * time.Second
	o := settings.SubscribeOptions{AckTimeout: core.Duration(limit)}
	s := newService(t, rowOptions{})
	again := make(chan struct{})
	came := sync.OnceFunc(func() { close(again) })
	s.Handle(s.reads("t", o), func(m *host.Message[[]byte]) error {
		if m.Attempt() > 1 {
			came()
			return nil
		}
		select {
		case <-again:
		case <-t.Context().Done():
		}
		return nil
	}, host.Workers(2))
	s.Start()
	s.put("t", texts("x")...)
	s.handled(2, 1, "x", 2, "x")
	s.left(0)
	time.Sleep(limit + limit/4) // in which a third one would come
	s.stop(0)
	s.codes(nil)
}

func TestS_PUL_23(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	s.Handle(s.reads("t", settings.SubscribeOptions{}), func(*host.Message[[]byte]) error { panic("odd") }, host.OnPanic(host.FailFast))
	s.Start()
	s.put("t", texts("x")...)
	s.ran(1, 1, "x")
	e, ok := errors.AsType[*host.HandlerError](s.Wait())
	if !ok || !strings.Contains(e.Error(), "odd") {
		t.Errorf("ended with %v", s.Wait())
	}
	s.codes(map[string]int{"L-PAN": 1, "L-FF": 1})
	s.left(1)
	next := newService(t, rowOptions{base: s.base})
	next.Handle(next.reads("t", settings.SubscribeOptions{}), servicetest.Always(nil))
	next.Start()
	next.Handled(1)
	next.stop(0)
}

// A second exclusive consumer waits until the first one leaves.
func TestS_PUL_28(t *testing.T) {
	t.Parallel()
	exclusive := settings.SubscribeOptions{Type: settings.TypeExclusive}
	first := row(t, exclusive, servicetest.Always(nil), nil)
	fast := func(s *settings.Settings) { s.OperationRetryDelay = core.Duration(50 * time.Millisecond) }
	second := newService(t, rowOptions{base: first.base, set: fast})
	second.Handle(second.reads("t", exclusive), servicetest.Always(nil))
	second.Launch()
	second.Eventually("it waits", func() bool { return len(second.Log.Lines("Pulsar connected")) > 0 })
	first.put("t", texts("x")...)
	first.handled(1, 0, "x")
	if second.Ready() {
		t.Error("the second serves beside the first")
	}
	first.Stop()
	second.Eventually("it serves", second.Ready)
	second.put("t", texts("y")...)
	second.handled(1, 0, "y")
	second.stop(0)
}

// With operation_retries it does not wait for ever.
func TestS_PUL_28_retries(t *testing.T) {
	t.Parallel()
	exclusive := settings.SubscribeOptions{Type: settings.TypeExclusive}
	first := row(t, exclusive, servicetest.Always(nil), nil)
	second := newService(t, rowOptions{base: first.base, set: func(s *settings.Settings) {
		s.OperationRetries, s.OperationRetryDelay = new(3), core.Duration(50*time.Millisecond)
	}})
	second.Handle(second.reads("t", exclusive), servicetest.Always(nil))
	second.Launch()
	e, ok := errors.AsType[*host.StartError](second.Wait())
	if !ok {
		t.Fatalf("ended with %v", second.Wait())
	}
	for _, text := range []string{second.topic("t"), sub, "exclusive"} {
		if !strings.Contains(strings.ToLower(e.Error()), text) {
			t.Errorf("%q does not name %s", e, text)
		}
	}
	first.stop(0)
}

// Without it a start that is cancelled ends the wait.
func TestS_PUL_28_cancelled(t *testing.T) {
	t.Parallel()
	exclusive := settings.SubscribeOptions{Type: settings.TypeExclusive}
	first := row(t, exclusive, servicetest.Always(nil), nil)
	second := newService(t, rowOptions{base: first.base})
	second.Handle(second.reads("t", exclusive), servicetest.Always(nil))
	second.Launch()
	second.Eventually("it waits", func() bool { return len(second.Log.Lines("Pulsar connected")) > 0 })
	began := time.Now()
	second.Cancel()
	_ = second.Wait() // it has not started
	if took := time.Since(began); took > servicetest.Limit/3 {
		t.Errorf("the end took %v", took)
	}
	first.stop(0)
}

// Who waits for a retry is not waited for: the message is there, at once.
func TestS_PUL_29(t *testing.T) {
	for name, end := range map[string]func(*service){
		"stop": func(s *service) {
			began := time.Now()
			s.Stop()
			if took := time.Since(began); took > servicetest.Limit/3 {
				s.t.Errorf("the stop took %v", took)
			}
		},
		"plugin ends": (*service).killPlugin,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			types(t, all, func(t *testing.T, o settings.SubscribeOptions) {
				s := row(t, o, until(1, host.RetryAfter(time.Hour, nil)), nil)
				s.put("t", texts("x")...)
				s.ran(1, nth(o, 1), "x")
				s.Eventually("it waits", func() bool { return s.Health().Endpoints[0].Subscriptions[0].Counters.Retried == 1 })
				end(s)
				next := s
				if name == "stop" {
					if n := s.b.Backlog(s.topic("t"), sub); n != 1 {
						t.Errorf("%d messages are left", n)
					}
					next = newService(t, rowOptions{base: s.base})
					next.Handle(next.reads("t", o), servicetest.Always(nil))
					next.Start()
				}
				next.Ran(1)
				next.left(0)
				next.stop(0)
			})
		})
	}
}
