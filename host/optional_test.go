// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/pluginapi"
)

// optional is a host with an endpoint main, which works, and an optional one,
// side. It is restarted every second; two crashes open its breaker.
func optional(t *testing.T, side *queues) (s *service, main *queues) {
	t.Helper()
	main = newQueues()
	s = newService(host.WithBreaker(2, time.Minute), host.WithRestartBackoff(time.Second, time.Second))
	host.Handle(attach(s.Host, "main", main).Subscription("orders"), acks)
	host.Handle(s.Endpoint("side", host.Plugin{InProcess: side, Optional: true}, nil).Subscription("extras"), acks)
	s.run(t)
	synctest.Wait()
	return s, main
}

// works checks that the rest of the host works, and stops it.
func works(t *testing.T, s *service, main *queues) {
	t.Helper()
	main.put("orders", "one")
	synctest.Wait()
	if d := cmp.Diff([]string{"ack one"}, main.verdicts("orders")); d != "" {
		t.Errorf("verdicts (-want +got):\n%s", d)
	}
	s.stop()
	if err := s.result(t); err != nil {
		t.Error(err)
	}
}

func TestOptionalEndpointNeverComesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var tries atomic.Int64
		var there atomic.Bool
		side := newQueues()
		side.connected = func(context.Context, []byte) error {
			if tries.Add(1); there.Load() {
				return nil
			}
			return unavailable("no broker")
		}
		s, main := optional(t, side)
		s.is(t, "at once", began, "host serving since 0s", "main(1,0) up since 0s", "main/orders open since 0s",
			"side(0,0) starting since 0s: connect: no broker", "side/extras waiting since 0s: connect: no broker")
		time.Sleep(2 * time.Second)
		tripped := "plugin crashed 2 times since " + began.Format(time.RFC3339) + ": connect: no broker"
		s.is(t, "after two tries", began, "host serving since 0s", "main(1,0) up since 0s", "main/orders open since 0s",
			"side(0,1) tripped since 1s: "+tripped, "side/extras waiting since 0s: "+tripped)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := tries.Load(); n != 12 {
			t.Errorf("%d tries, want 2 and then one a minute", n)
		}
		there.Store(true)
		time.Sleep(time.Minute)
		s.is(t, "when it is there at last", began, "ready host serving since 0s", "main(1,0) up since 0s", "main/orders open since 0s",
			"side(13,12) up since 11m1s", "side/extras open since 11m1s")
		works(t, s, main)
	})
}

func TestOptionalEndpointCrashesForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		side := newQueues()
		side.neverRestart = true
		s, main := optional(t, side)
		time.Sleep(time.Second)
		s.Crash("side")
		synctest.Wait()
		time.Sleep(time.Hour)
		lost := "plugin crashed and is not started again: " + crashed(1)
		s.is(t, "after the crash", began, "host serving since 0s", "main(1,0) up since 0s", "main/orders open since 0s",
			"side(1,0) lost since 1s: "+lost, "side/extras down since 1s: "+lost)
		works(t, s, main)
		if got := s.Health().Endpoints[1]; got.State != host.EndpointLost || got.Reason != lost {
			t.Errorf("after the stop it is %+v, want what it was lost for", got)
		}
	})
}

func TestOptionalEndpointComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		side := newQueues()
		s, main := optional(t, side)
		for range 2 {
			time.Sleep(2 * time.Second)
			s.Crash("side")
			synctest.Wait()
		}
		tripped := "plugin crashed 2 times since " + began.Add(2*time.Second).Format(time.RFC3339) + ": " + crashed(2)
		s.is(t, "with an open breaker", began, "host serving since 0s", "main(1,0) up since 0s", "main/orders open since 0s",
			"side(2,1) tripped since 4s: "+tripped, "side/extras down since 4s: "+tripped)
		side.put("extras", "kept")
		time.Sleep(61 * time.Second)
		s.is(t, "a minute later", began, "ready host serving since 0s", "main(1,0) up since 0s", "main/orders open since 0s",
			"side(3,2) up since 1m4s", "side/extras open since 1m4s")
		if d := cmp.Diff([]string{"ack kept"}, side.verdicts("extras")); d != "" {
			t.Errorf("verdicts (-want +got):\n%s", d)
		}
		works(t, s, main)
	})
}

// A subscription of an optional endpoint that ends for good stays down until the
// plugin's next life, and is lost once.
func TestOptionalSubscriptionEndsForGood(t *testing.T) {
	for name, c := range map[string]struct {
		ends, reopens *core.Fault
		reason        string
	}{
		"at once": {ends: &core.Fault{Code: core.FaultDenied, Message: "no permission"}, reason: "no permission"},
		"when it is opened again": {
			ends:    &core.Fault{Code: core.FaultUnavailable, Message: "moved", Transient: true, RetryAfter: time.Nanosecond},
			reopens: &core.Fault{Code: core.FaultDenied, Message: "no permission"},
			reason:  "open subscription extras: no permission",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				side := newQueues()
				var refusal atomic.Pointer[core.Fault]
				side.subscribed = func(context.Context, pluginapi.Registration) error {
					if f := refusal.Load(); f != nil {
						return f
					}
					return nil
				}
				s, main := optional(t, side)
				time.Sleep(time.Second)
				refusal.Store(c.reopens)
				side.fail("extras", c.ends)
				time.Sleep(time.Hour)
				s.is(t, "after the end", began, "host serving since 0s", "main(1,0) up since 0s", "main/orders open since 0s",
					"side(1,0) up since 0s", "side/extras down since 1s: "+c.reason)
				if lines := s.log.lines("level=ERROR", "subscription of an optional endpoint is lost"); len(lines) != 1 {
					t.Errorf("%d lines say so, want 1: %v", len(lines), lines)
				}
				refusal.Store(nil)
				s.Crash("side")
				time.Sleep(2 * time.Second)
				if !s.Ready() {
					t.Errorf("not ready with its next plugin: %v", summary(s.Health(), began))
				}
				works(t, s, main)
			})
		})
	}
}
