// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
)

// Close waits no longer than it may for a handler that does not return.
func TestCloseIsLimited(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	c, _, _ := brokerOf(t, srv, s)
	h := blocking{consumer{heard: newHeard()}, make(chan struct{})}
	c.Consumer(h)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for range 2 {
		if f, ok := errors.AsType[*core.Fault](s.Close(ctx)); !ok || f.Code != core.FaultTimeout {
			t.Errorf("got %v; want a timeout", f)
		}
	}
	close(h.free)
	s.mustClose(t)()
}

// blocking is a consumer that does what it must not.
type blocking struct {
	consumer
	free chan struct{}
}

func (b blocking) Lost(error) { <-b.free }

// Close before, during and after Connect.
func TestClose(t *testing.T) {
	srv := serve(t)
	c, err := New(Config{Address: srv.address()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("close before Connect: %v", err)
	}
	if f, ok := errors.AsType[*core.Fault](c.Connect(t.Context())); !ok || f.Code != core.FaultClosed {
		t.Errorf("connect after Close: %v", f)
	}
	during := subjectOf(t, Config{Address: srv.address()})
	result := make(chan error, 1)
	go func() { result <- during.Connect(t.Context()) }()
	srv.accept()
	during.mustClose(t)()
	if f, ok := errors.AsType[*core.Fault](within(t, "the end of Connect", result)); !ok || f.Code != core.FaultClosed {
		t.Errorf("connect during Close: %v", f)
	}
	after := subjectOf(t, Config{Address: srv.address()})
	go func() { result <- after.Connect(t.Context()) }()
	p := srv.admit()
	if err := within(t, "the end of Connect", result); err != nil {
		t.Fatal(err)
	}
	after.mustClose(t)()
	p.gone()
	select {
	case <-after.Fatal():
		t.Error("a closed client has ended by itself")
	default:
	}
	if _, err := after.Topics(t.Context(), "a/b"); err == nil {
		t.Error("a closed client lists topics")
	}
}
