// SPDX-License-Identifier: Apache-2.0

package hosttest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// Start finds the brokers that the endpoints are on, however they came there.
func TestStartFindsBrokers(t *testing.T) {
	one, other := hosttest.NewBroker(), hosttest.NewBroker()
	for name, wiring := range map[string]func() (*host.Host, host.Plugin){
		"replace": func() (*host.Host, host.Plugin) { return host.New(one.Replace()), host.Plugin{Name: "mqtt"} },
		"replace each": func() (*host.Host, host.Plugin) {
			return host.New(hosttest.ReplaceEach(map[string]*hosttest.Broker{"in": one})), other.Plugin()
		},
		"plugin": func() (*host.Host, host.Plugin) { return host.New(), one.Plugin() },
	} {
		t.Run(name, func(t *testing.T) {
			h, p := wiring()
			handled := 0
			host.Handle(h.Endpoint("in", p, nil).Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
				time.Sleep(20 * time.Millisecond)
				handled++
				return nil
			})
			s := hosttest.Start(t, h)
			one.Deliver("orders", hosttest.Text("x"))
			s.Wait()
			if handled != 1 {
				t.Error("Wait did not wait for it")
			}
		})
	}
	text := fails(t, func(tb testing.TB) {
		h := host.New()
		host.Handle(h.Endpoint("in", host.Plugin{Name: "mqtt", Path: "/bin/cat"}, nil).Subscription("orders"), acks)
		hosttest.Start(tb, h, one)
	})
	has(t, text, "no endpoint of the host runs on the broker", "Replace()")
}

// A start takes no time in a bubble, so that what a test delivers then is handled
// at times without a fraction.
func TestStartTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		b := hosttest.NewBroker()
		h := host.New(b.Replace())
		in := h.Endpoint("in", host.Plugin{Name: "x"}, nil)
		var at []time.Duration
		host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
			at = append(at, time.Since(began))
			return host.RetryAfter(time.Second, nil)
		}, host.MaxAttempts(2))
		s := hosttest.Start(t, h)
		b.Deliver("orders", hosttest.Text("x"))
		s.Wait()
		if len(at) != 2 || at[0] != 0 || at[1] != time.Second {
			t.Errorf("runs at %v", at)
		}
	})
}
