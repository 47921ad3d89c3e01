// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// reader is a child that reads a bound queue.
func reader(t *testing.T, address string) *process {
	t.Helper()
	return startChild(t, childConfig{
		Endpoints:     []childEndpoint{{Name: "in", Plugin: "zmq", Path: zmqPlugin(t), Settings: bound(settings.PatternQueue, address)}},
		Subscriptions: []childSubscription{{From: "in", Name: "jobs", Tells: true}},
	}, inFolder(socketFolder(t)))
}

// Z-03: the service that binds is killed and comes back on its port. The flow
// goes on without the publisher, and no publish takes longer than it waits for a
// peer.
func TestZ03BoundSideRestarts(t *testing.T) {
	t.Parallel()
	const (
		kill, back, flows = 5 * time.Second, 8 * time.Second, 13 * time.Second
		every             = 100 * time.Millisecond
		peerWait          = 5 * time.Second // of a publish
	)
	address := freeAddress(t)
	first := reader(t, address)
	first.next("ready")
	s := newService(t)
	out := s.zmq("out", dialing(settings.PatternQueue, address))
	jobs := s.to(out, "jobs")
	s.serve()
	began := time.Now()
	past := func(at time.Duration) { until(began.Add(at)) } // the time of the case
	type sent struct {
		i    int
		took time.Duration
		err  error
	}
	results := make(chan sent, 1000)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() { // a message each 100 ms, whatever becomes of those before
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			at := time.Now()
			_, err := jobs.Publish(t.Context(), fmt.Appendf(nil, "m%04d", i))
			results <- sent{i, time.Since(at), err}
		}
	}()
	first.next("run")
	past(kill)
	first.kill()
	killed, gone := len(results), time.Now()
	past(back)
	second := reader(t, address)
	again := second.next("run")
	away := time.Since(gone)
	if at := time.Since(began); at > flows+late {
		t.Errorf("the flow is back after %v", at)
	}
	past(flows)
	close(quit)
	<-done
	close(results)
	failed := 0
	for r := range results {
		if r.took > peerWait+late {
			t.Errorf("publish %d took %v", r.i, r.took)
		}
		if r.err != nil {
			failed++
		}
	}
	t.Logf("%d sent at the kill; first one after it %s; %d failed", killed, again.Payload, failed)
	if failed > 2+int(away/peerWait) { // what waits finds the peer that is back in time
		t.Errorf("%d publishes failed, and the peer was away for %v", failed, away)
	}
	if lost, back := s.log.having("WARN", "endpoint:out", "no connection"), s.log.having("INFO", "endpoint:out", "connection is up"); len(lost) != 1 || len(back) != 1 {
		t.Errorf("%d losses and %d returns are told", len(lost), len(back))
	}
	second.signal(syscall.SIGTERM)
	second.status()
}

// Z-04: the publisher is replaced by a new process again and again, two of them
// by kill -9, which leaves the socket's file. The subscriber has all of each.
func TestZ04DialingSideReconnects(t *testing.T) {
	t.Parallel()
	const rounds, each = 4, 20
	address := "ipc://" + filepath.Join(socketFolder(t), "s.sock")
	s := newService(t)
	in := s.zmq("in", dialing(settings.PatternFanOut, address))
	runs := s.notes(in.Subscription("events"), acks, s.elsewhere())
	s.serves()
	for r := range rounds {
		p := startChild(t, childConfig{
			Endpoints: []childEndpoint{{Name: "out", Plugin: "zmq", Path: zmqPlugin(t), Settings: bound(settings.PatternFanOut, address)}},
			Publish:   &childPublish{To: "out", Name: "events", Prefix: fmt.Sprintf("r%d", r), Count: each, Size: 100, Routed: true},
		}, inFolder(socketFolder(t)))
		for range each {
			if e := p.next("stored"); e.Error != "" {
				t.Errorf("round %d: %s", r, e.Error)
			}
		}
		eventually(t, fmt.Sprintf("round %d has come", r), func() bool { n, _ := runs.total(); return n == (r+1)*each })
		if r%2 == 0 {
			p.signal(syscall.SIGTERM)
			p.status()
		} else {
			p.kill()
		}
		eventually(t, "the loss is told", func() bool { return len(s.log.having("WARN", "no connection")) == r+2 })
	}
	if ended := s.log.of("L-END", ""); len(ended) > 0 {
		t.Errorf("the subscription ended: %v", ended)
	}
	s.stops()
	if n, distinct := runs.total(); n != rounds*each || distinct != rounds*each {
		t.Errorf("%d runs of %d messages", n, distinct)
	}
	// The service comes first, so that the first publisher is missing already.
	lost, back := len(s.log.having("WARN", "no connection")), len(s.log.having("INFO", "connection is up"))
	if lost != rounds+1 || back != rounds {
		t.Errorf("%d losses and %d returns are told", lost, back)
	}
	if warned := s.log.having("WARN"); len(warned) > rounds+5 {
		t.Errorf("%d warnings: %v", len(warned), warned)
	}
}
