// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
)

// untilSignal runs the host until a signal, SIGINT and SIGTERM by default.
func (s *service) untilSignal(t *testing.T, signals ...os.Signal) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.done <- host.RunUntilSignal(context.Background(), s.Host, signals...)
	}()
	t.Cleanup(func() {
		s.Abort()
		<-ended
	})
}

// signal sends a signal to this process.
func send(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), sig); err != nil {
		t.Fatal(err)
	}
}

func TestFirstSignalStopsInOrder(t *testing.T) {
	for _, c := range []struct {
		signal  syscall.Signal
		signals []os.Signal
	}{
		{syscall.SIGINT, nil},
		{syscall.SIGTERM, nil},
		{syscall.SIGWINCH, []os.Signal{syscall.SIGWINCH}},
	} {
		t.Run(c.signal.String(), func(t *testing.T) {
			q := newQueues()
			q.put("orders", "one")
			s := newService()
			began, release := make(chan struct{}), make(chan struct{})
			host.Handle(attach(s.Host, "in", q).Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
				close(began)
				<-release
				return nil
			})
			s.untilSignal(t, c.signals...)
			receive(t, began)
			send(t, c.signal)
			eventually(t, "the host stops", func() bool { return s.Health().State == host.StateStopping })
			close(release)
			if err := s.result(t); err != nil {
				t.Errorf("got %v", err)
			}
			if d := cmp.Diff([]string{"ack one"}, q.verdicts("orders")); d != "" {
				t.Errorf("verdicts (-want +got):\n%s", d)
			}
		})
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	q := newQueues()
	q.put("orders", "one")
	s := newService()
	began := make(chan struct{})
	host.Handle(attach(s.Host, "in", q).Subscription("orders"), func(ctx context.Context, _ *host.Message[[]byte]) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	})
	s.untilSignal(t)
	receive(t, began)
	send(t, syscall.SIGINT)
	eventually(t, "the host stops", func() bool { return s.Health().State == host.StateStopping })
	send(t, syscall.SIGTERM)
	err := s.result(t)
	var ended *host.SignalError
	if !errors.As(err, &ended) || ended.Signal != syscall.SIGTERM || ended.ExitCode() != 143 {
		t.Fatalf("got %v, want a *SignalError of SIGTERM", err)
	}
	var abandoned *host.AbandonedError
	if !errors.As(err, &abandoned) {
		t.Errorf("%v does not list what was cut off", err)
	}
	if left := q.left("orders"); len(left) != 1 {
		t.Errorf("left %v, want the message", left)
	}
}

// A signal that comes twice at a time, as timeout(1) sends it, is one; later, or
// another one, it is the second.
func TestSignalThatComesTwiceIsOne(t *testing.T) {
	for name, c := range map[string]struct {
		second syscall.Signal
		after  time.Duration
		ends   bool
	}{
		"at a time":              {syscall.SIGTERM, 0, false},
		"within 50 ms":           {syscall.SIGTERM, 50 * time.Millisecond, false},
		"later":                  {syscall.SIGTERM, 51 * time.Millisecond, true},
		"another one at a time":  {syscall.SIGINT, 0, true},
		"another one after 50ms": {syscall.SIGINT, 50 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueues()
				q.put("orders", "one")
				s := newService()
				release, caught := make(chan struct{}), make(chan os.Signal, 2)
				host.Handle(attach(s.Host, "in", q).Subscription("orders"), func(ctx context.Context, _ *host.Message[[]byte]) error {
					select {
					case <-release:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				go func() { s.done <- s.RunUntil(t.Context(), caught) }()
				synctest.Wait()
				caught <- syscall.SIGTERM
				synctest.Wait()
				time.Sleep(c.after)
				caught <- c.second
				synctest.Wait()
				close(release)
				err := s.result(t)
				var ended *host.SignalError
				if errors.As(err, &ended) != c.ends || !c.ends && err != nil {
					t.Errorf("got %v, want that it ends at once: %v", err, c.ends)
				}
			})
		})
	}
}

// A start that a signal cuts short is a stop like any other; one that the
// caller's context cuts short says so, as Run does.
func TestSignalDuringTheStart(t *testing.T) {
	q := newQueues()
	connecting := make(chan struct{})
	q.connected = func(ctx context.Context, _ []byte) error {
		close(connecting)
		<-ctx.Done()
		return ctx.Err()
	}
	s := newService()
	host.Handle(attach(s.Host, "in", q).Subscription("orders"), acks)
	s.untilSignal(t)
	receive(t, connecting)
	send(t, syscall.SIGTERM)
	if err := s.result(t); err != nil {
		t.Errorf("got %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	again := newService()
	host.Handle(attach(again.Host, "in", newQueues()).Subscription("orders"), acks)
	var refused *host.StartError
	if err := host.RunUntilSignal(ctx, again.Host); !errors.As(err, &refused) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a *StartError of the context", err)
	}
}

func TestRunUntilSignalReturnsWhatRunReturns(t *testing.T) {
	s := newService()
	var refused *host.StartError
	if err := host.RunUntilSignal(t.Context(), s.Host); !errors.As(err, &refused) || len(refused.Findings) != 1 {
		t.Errorf("got %v, want a *StartError with a finding", err)
	}
	if err := host.RunUntilSignal(t.Context(), s.Host); err == nil {
		t.Error("a second run did not fail")
	}
}
