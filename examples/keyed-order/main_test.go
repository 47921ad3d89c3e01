// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// A desk handles several ships at a time, and what one of them reports in order.
func TestAShipIsHandledInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		b.Source(reports, hosttest.CountingTopic())
		h := host.New(b.Replace(), hosttest.Logger(t))
		entries := make(chan Entry, 100)
		desk(h, "pulsar://127.0.0.1", "north", entries)
		s := hosttest.Start(t, h)
		ships, steps := []string{"Iris", "Nike", "Thalia"}, []string{"moored", "loaded", "sailed"}
		for _, step := range steps {
			for _, ship := range ships {
				b.Deliver(reports, hosttest.JSON(step).With("partition-key", ship))
			}
		}
		s.Wait()
		close(entries)
		got := map[string][]string{}
		for e := range entries {
			got[e.Ship] = append(got[e.Ship], e.Step)
		}
		for _, ship := range ships {
			if !slices.Equal(got[ship], steps) {
				t.Errorf("%s: %v, want %v", ship, got[ship], steps)
			}
		}
	})
}

func TestLineNamesEveryDesk(t *testing.T) {
	got := line([]Entry{{"Iris", "north", "moored"}, {"Iris", "south", "sailed"}})
	if want := "Iris, at north and south: moored, sailed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
