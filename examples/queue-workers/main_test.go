// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// worker runs a worker with a broker in place of the ventilator and one in place
// of its own queue.
func worker(t *testing.T, done chan<- report) (jobs, again *hosttest.Broker, s *hosttest.Service) {
	t.Helper()
	jobs, again = hosttest.NewBroker(), hosttest.NewBroker()
	dialed := hosttest.Stream()
	dialed.Address = "" // nothing can be sent to a ventilator
	jobs.Source("jobs", dialed)
	again.Source("jobs", hosttest.Stream())
	h := host.New(hosttest.ReplaceEach(map[string]*hosttest.Broker{"jobs": jobs, "again": again}), hosttest.Logger(t))
	work(h, "ann", "tcp://127.0.0.1:5557", done)
	return jobs, again, hosttest.Start(t, h, jobs, again)
}

func TestJobsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan report, 2)
		jobs, again, s := worker(t, done)
		jobs.Deliver("jobs", hosttest.JSON(Job{Number: 1}), hosttest.JSON(Job{Number: 2}))
		s.Wait()
		for n := 1; n <= 2; n++ {
			if got, want := <-done, (report{"ann", n, 1}); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		}
		if copies := again.Published("jobs"); len(copies) != 0 {
			t.Errorf("copies %v", copies)
		}
	})
}

// A job that fails is tried again by the same worker, through its own queue.
func TestAJobThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan report, 1)
		jobs, again, s := worker(t, done)
		jobs.Deliver("jobs", hosttest.JSON(Job{Number: 7}))
		s.Wait()
		if got, want := <-done, (report{"ann", 7, 2}); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
		if copies := again.Published("jobs"); len(copies) != 1 {
			t.Errorf("copies %v, want one", copies)
		}
	})
}
