// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/longshore-go/longshore/core"
)

// stuck is the library's client while a broker answers nothing: Close waits.
type stuck struct {
	pulsar.Client
	free chan struct{}
}

func (s stuck) Close() {
	<-s.free
	s.Client.Close()
}

// Close waits for the library no longer than it may, and says what it left.
func TestCloseOfTheLibraryIsLimited(t *testing.T) {
	for name, limit := range map[string]time.Duration{"the client's limit": 20 * time.Millisecond, "the context's": time.Hour} {
		t.Run(name, func(t *testing.T) {
			c, err := New(Config{Address: Address{Hosts: []string{"127.0.0.1:1"}}})
			if err != nil {
				t.Fatal(err)
			}
			free := make(chan struct{})
			t.Cleanup(func() { close(free) })
			c.library, c.times.parting = stuck{c.library, free}, limit
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			for range 2 { // the second call is told the same
				f, ok := errors.AsType[*core.Fault](c.Close(ctx))
				if !ok || f.Code != core.FaultTimeout {
					t.Errorf("got %v; want a timeout", f)
				}
			}
			if limit < time.Second && ctx.Err() != nil {
				t.Error("it waited for the context")
			}
		})
	}
}

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

// The library's metrics are none of the process's.
func TestMetricsAreOurOwn(t *testing.T) {
	subjectOf(t, Config{Address: Address{Hosts: []string{"127.0.0.1:1"}}})
	all, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if strings.Contains(f.GetName(), "pulsar") {
			t.Errorf("the process has the metric %s", f.GetName())
		}
	}
}
