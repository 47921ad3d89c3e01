// SPDX-License-Identifier: Apache-2.0

package hosttest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// All ready capability sets and destinations can be started with, and give a
// message twice when it fails once.
func TestKinds(t *testing.T) {
	for name, source := range map[string]core.Capabilities{
		"queue": hosttest.Queue(), "counting queue": hosttest.CountingQueue(), "delay queue": hosttest.DelayQueue(),
		"counting topic": hosttest.CountingTopic(), "session": hosttest.Session(), "lease": hosttest.Lease(),
		"counting lease": hosttest.CountingLease(), "stream": hosttest.Stream(), "group": hosttest.Group(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := hosttest.NewBroker()
				b.Source("orders", source)
				h := host.New(b.Replace(), hosttest.Logger(t))
				var runs []string
				began := time.Now()
				host.Handle(h.Endpoint("in", host.Plugin{Name: "x"}, nil).Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
					runs = append(runs, fmt.Sprint(m.Attempt(), " ", time.Since(began)))
					return errors.New("no")
				}, host.MaxAttempts(2), host.Backoff(host.Constant(time.Second).Jitter(0)))
				s := hosttest.Start(t, h)
				b.Deliver("orders", hosttest.Text("x"))
				s.Wait()
				if got := fmt.Sprint(runs); got != "[1 0s 2 1s]" {
					t.Errorf("runs %v", got)
				}
			})
		})
	}
}

// Where headers are enveloped a dead letter has those of the message alone.
func TestEnveloped(t *testing.T) {
	for name, p := range map[string]core.Publishing{"stored": hosttest.Stored(), "enveloped": hosttest.Enveloped()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := hosttest.NewBroker()
				b.Destination("dead", p)
				h := host.New(b.Replace(), hosttest.Logger(t))
				in := h.Endpoint("in", host.Plugin{Name: "x"}, nil)
				host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
					return host.DeadLetter(errors.New("no"))
				}, host.DeadLetterTo(in.To("dead")), host.MaxAttempts(2))
				hosttest.Start(t, h)
				b.Deliver("orders", hosttest.Text("x").With("tenant", "acme"))
				dead := b.WaitPublished(t, "dead", 1)[0]
				if dead.Header("tenant") != "acme" || (dead.Header("x-longshore-reason") == "no") != (name == "stored") {
					t.Errorf("headers %v", dead.Headers)
				}
			})
		})
	}
}
