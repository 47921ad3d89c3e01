// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// start runs the service's own wiring on a broker in the test. Its source settles
// nothing, as a pipe.
func start(t *testing.T) (*hosttest.Broker, *hosttest.Service) {
	b := hosttest.NewBroker()
	b.Source("orders", hosttest.Stream())
	h := host.New(b.Replace(), hosttest.Logger(t))
	register(h)
	return b, hosttest.Start(t, h, b)
}

func TestOrdersAreShipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := start(t)
		b.Deliver("orders", hosttest.JSON(Order{ID: 1, Address: "Pier 4"}), hosttest.JSON(Order{ID: 3, Address: "Pier 7"}))
		s.Wait()
		if got, want := fmt.Sprint(b.Published("shipped")), `["{\"ID\":1,\"Address\":\"Pier 4\"}" "{\"ID\":3,\"Address\":\"Pier 7\"}"]`; got != want {
			t.Errorf("shipped %s, want %s", got, want)
		}
	})
}

func TestOrdersWithoutAnAddressAreTriedThreeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := start(t)
		b.Deliver("orders", hosttest.JSON(Order{ID: 2}))
		s.Wait()
		if n := len(b.Published("orders")); n != 2 {
			t.Errorf("%d copies, want 2", n)
		}
		dead := b.Published("dead")
		if len(dead) != 1 || dead[0].Header("x-longshore-reason") != "an order without an address" {
			t.Errorf("dead letters %v", dead)
		}
	})
}

// A dead letter that cannot be published for a while is tried again.
func TestDeadLettersSurviveAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := start(t)
		b.FailPublishes("dead", hosttest.Unavailable, 3)
		b.Deliver("orders", hosttest.JSON(Order{ID: 2}))
		s.Wait()
		if n := len(b.Published("dead")); n != 1 {
			t.Errorf("%d dead letters, want 1", n)
		}
	})
}
