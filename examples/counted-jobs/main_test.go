// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// crew runs two workers on a broker in place of the Pulsar one.
func crew(t *testing.T) (*hosttest.Broker, []*hosttest.Service) {
	t.Helper()
	b := hosttest.NewBroker()
	b.Source(jobs, hosttest.CountingTopic())
	var all []*hosttest.Service
	for _, name := range []string{"ann", "ben"} {
		h := host.New(b.Replace(), hosttest.Logger(t))
		work(h, "pulsar://127.0.0.1", name)
		all = append(all, hosttest.Start(t, h))
	}
	return b, all
}

// A job that fails comes again, to either worker, and is counted.
func TestAJobThatFailsComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, all := crew(t)
		b.Deliver(jobs, hosttest.JSON(Job{Number: hard}))
		b.WaitPublished(t, done, 1)
		for _, s := range all {
			s.Wait()
		}
		var r Report
		if err := json.Unmarshal(b.Published(done)[0].Payload, &r); err != nil || r.Job != hard || r.Attempts != 3 {
			t.Errorf("got %+v, %v; want job %d after 3 attempts", r, err, hard)
		}
		if copies, letters := b.Published(jobs), b.Published(dead); len(copies)+len(letters) != 0 {
			t.Errorf("copies %v and dead letters %v, want none", copies, letters)
		}
	})
}

// A job that fails always is a dead letter after three attempts in all.
func TestAJobIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, all := crew(t)
		b.Deliver(jobs, hosttest.JSON(Job{Number: broken}))
		letters := b.WaitPublished(t, dead, 1)
		for _, s := range all {
			s.Wait()
		}
		if n := len(b.Published(done)); n != 0 {
			t.Errorf("%d reports of a job that is given up", n)
		}
		if n, why := letters[0].Header("x-longshore-attempts"), letters[0].Header("x-longshore-reason"); n != "3" || why != "the valve is stuck" {
			t.Errorf("the dead letter says %q attempts, %q", n, why)
		}
	})
}
