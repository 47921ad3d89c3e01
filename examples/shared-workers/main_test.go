// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// ann runs a worker on a broker in place of the MQTT one. A job cannot kill it.
func ann(t *testing.T) (b *hosttest.Broker, s *hosttest.Service, killed *int) {
	t.Helper()
	b = hosttest.NewBroker()
	b.Source("jobs", hosttest.Session())
	killed = new(int)
	h := host.New(b.Replace(), hosttest.Logger(t))
	work(h, "mqtt://127.0.0.1", "ann", func() { *killed++ })
	return b, hosttest.Start(t, h), killed
}

// reports are what a worker has said so far.
func reports(t *testing.T, b *hosttest.Broker) (list []Report) {
	t.Helper()
	for _, m := range b.Published("jobs/done") {
		var r Report
		if err := json.Unmarshal(m.Payload, &r); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// A job that fails is tried again by way of the topic: any worker may get it.
func TestAJobThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s, killed := ann(t)
		b.Deliver("jobs", hosttest.JSON(Job{Number: hard}))
		s.Wait()
		if got, want := reports(t, b), (Report{"ann", hard, 2, false}); len(got) != 1 || got[0] != want {
			t.Errorf("got %v, want %v", got, want)
		}
		if copies := b.Published("jobs"); len(copies) != 1 || *killed != 0 {
			t.Errorf("copies %v, want one; killed %d times", copies, *killed)
		}
	})
}

// A job kills its worker, but not where it comes again.
func TestAJobKillsItsWorkerOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s, killed := ann(t)
		b.Deliver("jobs", hosttest.JSON(Job{Number: deadly}))
		s.Wait()
		if *killed != 1 {
			t.Errorf("killed %d times, want once", *killed)
		}
		b.Deliver("jobs", hosttest.JSON(Job{Number: deadly}).With("mqtt-redelivered", "true"))
		s.Wait()
		if got, want := reports(t, b), (Report{"ann", deadly, 1, true}); *killed != 1 || len(got) != 2 || got[1] != want {
			t.Errorf("killed %d times, got %v, want %v in the end", *killed, got, want)
		}
	})
}
