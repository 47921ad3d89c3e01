// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

func TestRegisteringAfterRunPanics(t *testing.T) {
	s := newService()
	in := attach(s.Host, "in", newQueues())
	orders := in.Subscription("orders")
	host.Handle(orders, acks)
	s.serve(t)
	for name, f := range map[string]func(){
		"Endpoint":     func() { attach(s.Host, "more", newQueues()) },
		"Subscription": func() { in.Subscription("more") },
		"Handle":       func() { host.Handle(orders, acks) },
		"To":           func() { host.To[[]byte](s.Host, in.To("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), name+" after Run") {
					t.Errorf("got panic %v, want one that names %s", v, name)
				}
			}()
			f()
		})
	}
	if err := s.Run(context.Background()); err == nil {
		t.Error("a second Run did not fail")
	}
}

func TestRegisteringWithoutItsOwnerPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"Handle without a subscription": func() { host.Handle(nil, acks) },
		"To without a host":             func() { host.To[[]byte](nil, core.Destination{}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), name) {
					t.Errorf("got panic %v, want one that says %s", v, name)
				}
			}()
			f()
		})
	}
}

// pending is a message type of a service that JSON cannot carry.
type pending struct {
	Job struct{ Done chan struct{} }
}

// A start names the field, where it lies and what to do.
func TestTypesThatCannotBeCarried(t *testing.T) {
	s := newService()
	in := attach(s.Host, "in", newQueues())
	host.Handle(in.Subscription("jobs"), func(context.Context, *host.Message[pending]) error { return nil })
	host.To[[]pending](s.Host, in.To("jobs"))
	e := startError(t, s)
	if len(e.Findings) != 2 {
		t.Fatalf("%d findings, want 2: %v", len(e.Findings), e)
	}
	for _, f := range e.Findings {
		if !strings.Contains(f.Message, "its field Job.Done is a chan struct {}") || !strings.Contains(f.Fix, `json:"-"`) {
			t.Errorf("found %v, want the field and the fix", f)
		}
	}
}

func TestRegistrationsThatClash(t *testing.T) {
	s := newService()
	in := attach(s.Host, "in", newQueues())
	orders := in.Subscription("orders")
	host.Handle(orders, acks)
	host.Handle(orders, retries)
	host.Handle(in.Subscription("orders"), acks)
	host.Handle(in.Subscription(""), acks)
	host.Handle[[]byte](in.Subscription("nothing"), nil)
	host.Handle[[]byte](in.Subscription("nowhere"), nil, host.Forward(core.Destination{}))
	host.Handle(in.Subscription("signals"), func(context.Context, *host.Message[chan int]) error { return nil })
	host.To[func()](s.Host, in.To("calls"))
	host.Handle(in.Subscription("small", host.Window(-1, 0), nil), acks)
	s.Endpoint("", host.Plugin{InProcess: newQueues()}, nil)
	s.Endpoint("nameless", host.Plugin{}, nil)
	e := startError(t, s)
	want := []string{
		": Endpoint", ": Plugin.Name", ": Subscription", ": To",
		"nothing: Handle", "nowhere: Forward", "orders: Handle", "orders: Subscription", "signals: Handle", "small: Window",
	}
	if diff := cmp.Diff(want, options(e)); diff != "" {
		t.Errorf("findings (-want +got):\n%s\n%v", diff, e)
	}
}

func TestNothingIsAttached(t *testing.T) {
	e := startError(t, newService())
	if want := "start host: host: Endpoint: nothing is attached; call Host.Endpoint before Run"; e.Error() != want {
		t.Errorf("got %v, want %s", e, want)
	}
}
