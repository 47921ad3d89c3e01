// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// A handler that ends its goroutine, as t.FailNow does, is one that panicked:
// the rule OnPanic says what becomes of its message, and the next one is
// handled.
func TestHandlerEndsItsGoroutine(t *testing.T) {
	q := newQueues()
	q.put("orders", "1", "exit", "2")
	q.end("orders")
	s := newService()
	in := attach(s.Host, "in", q)
	host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		if string(m.Value) == "exit" {
			runtime.Goexit()
		}
		return nil
	}, host.OnPanic(host.AsDrop))
	s.run(t)
	if err := s.result(t); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"ack 1", "ack 2", "reject exit"}, q.verdicts("orders")); d != "" {
		t.Errorf("verdicts (-want +got):\n%s", d)
	}
	if lines := s.log.lines("code=L-PAN", "ended its goroutine with runtime.Goexit", "TestHandlerEndsItsGoroutine"); len(lines) != 1 {
		t.Errorf("lines %v", lines)
	}
}

func TestHandlerEndsItsGoroutineFailingFast(t *testing.T) {
	q := newQueues()
	q.put("orders", "exit")
	s := newService()
	in := attach(s.Host, "in", q)
	host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
		runtime.Goexit()
		return nil
	}, host.OnPanic(host.FailFast))
	s.run(t)
	var failed *host.HandlerError
	var panicked *host.PanicError
	err := s.result(t)
	if !errors.As(err, &failed) || !errors.As(err, &panicked) {
		t.Fatalf("got %v", err)
	}
	if got := panicked.Error(); !strings.HasPrefix(got, "handler ended its goroutine with runtime.Goexit") {
		t.Errorf("got %q", got)
	}
}

// fuse is a payload whose decoding panics, or ends its goroutine.
type fuse struct{}

func (*fuse) UnmarshalJSON(b []byte) error {
	if string(b) == "1" {
		panic("short circuit")
	}
	runtime.Goexit()
	return nil
}

// What a payload's own decoding throws is a panic as well, and the message
// cannot end the process.
func TestDecodingThatPanics(t *testing.T) {
	q := newQueues()
	q.put("orders", "1", "2")
	q.end("orders")
	s := newService()
	in := attach(s.Host, "in", q)
	host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[fuse]) error { return nil },
		host.OnPanic(host.AsDrop))
	s.run(t)
	if err := s.result(t); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"reject 1", "reject 2"}, q.verdicts("orders")); d != "" {
		t.Errorf("verdicts (-want +got):\n%s", d)
	}
	if lines := s.log.lines("code=L-PAN", `panic="short circuit"`); len(lines) != 1 {
		t.Errorf("lines %v", lines)
	}
}

// A RetryToFunc that ends its goroutine has named no destination.
func TestRetryToFuncEndsItsGoroutine(t *testing.T) {
	q := newQueues()
	q.put("orders", "1", "2")
	q.end("orders")
	s := newService()
	in := attach(s.Host, "in", q)
	host.Handle(in.Subscription("orders"),
		func(context.Context, *host.Message[[]byte]) error { return errors.New("not yet") },
		host.MaxAttempts(3), host.RetryToFunc(func(core.Message, uint64) (core.Destination, error) {
			runtime.Goexit()
			return core.Destination{}, nil
		}))
	s.run(t)
	if err := s.result(t); err != nil {
		t.Fatal(err)
	}
	if lines := s.log.lines("RetryToFunc ended its goroutine with runtime.Goexit"); len(lines) != 2 {
		t.Errorf("lines %v", lines)
	}
}
