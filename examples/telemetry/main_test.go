// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// station runs the station on a broker in place of the MQTT one.
func station(t *testing.T, placed chan<- string) (*hosttest.Broker, *hosttest.Service) {
	t.Helper()
	b := hosttest.NewBroker(hosttest.Matching(hosttest.Topics))
	unsettled := hosttest.Stream()
	unsettled.Address = "" // a filter names no one topic
	b.Source(allGauges, unsettled)
	h := host.New(b.Replace(), hosttest.Logger(t))
	read(h, "mqtt://127.0.0.1", placed)
	return b, hosttest.Start(t, h)
}

// reading is a message of a gauge.
func reading(topic string, metres float64) hosttest.Message {
	m := hosttest.JSON(Reading{metres})
	m.Name = topic
	return m
}

func TestReadingsArePlaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		placed := make(chan string, 2)
		b, s := station(t, placed)
		b.Deliver(allGauges, reading("harbour/lock/level", 4.2), reading("harbour/basin/level", 6.8))
		s.Wait()
		for _, want := range []string{"the lock: 4.2 m at attempt 1", "the basin: 6.8 m at attempt 1"} {
			if got := <-placed; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}

// What cannot be placed yet comes again by way of its own topic.
func TestANewGaugeIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		placed := make(chan string, 1)
		b, s := station(t, placed)
		b.Deliver(allGauges, reading("harbour/pier-4/level", 5.1))
		s.Wait()
		if got, want := <-placed, "a new gauge, pier-4: 5.1 m at attempt 2"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if copies := b.Published("harbour/pier-4/level"); len(copies) != 1 {
			t.Errorf("copies %v, want one", copies)
		}
	})
}
