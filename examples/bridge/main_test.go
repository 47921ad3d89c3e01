// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// between runs the bridge between two brokers in place of the real ones.
func between(t *testing.T) (sea, land *hosttest.Broker, s *hosttest.Service) {
	t.Helper()
	sea, land = hosttest.NewBroker(), hosttest.NewBroker()
	for _, name := range []string{seaTopic, "bridge/again"} {
		sea.Source(name, hosttest.Session())
	}
	land.Source(landTopic, hosttest.CountingTopic())
	h := host.New(hosttest.ReplaceEach(map[string]*hosttest.Broker{"sea": sea, "land": land}), hosttest.Logger(t))
	bridge(h, "mqtt://127.0.0.1", "pulsar://127.0.0.1")
	return sea, land, hosttest.Start(t, h)
}

// headers are a message's, one a line.
func headers(m hosttest.Message) string {
	var lines []string
	for _, h := range m.Headers {
		lines = append(lines, h.Name+"="+string(h.Value))
	}
	return strings.Join(lines, "\n")
}

// Each message crosses once and does not come back, with its headers but for the
// runtime's own, and one value of each.
func TestMessagesCrossOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sea, land, s := between(t)
		notice := hosttest.Text("fog")
		notice.Headers = core.Headers{
			{Name: "X-Tenant", Value: []byte("a")}, {Name: "x-ruststream-retry-count", Value: []byte("2")},
			{Name: "x-tenant", Value: []byte("b")}, {Name: "X-Longshore-Reason", Value: []byte("none")},
		}
		sea.Deliver(seaTopic, notice)
		land.Deliver(landTopic, hosttest.Text("berth 4 is free"))
		s.Wait()
		crossing := map[string]string{}
		for _, m := range append(sea.Published(seaTopic), land.Published(landTopic)...) {
			crossing[string(m.Payload)] += headers(m)
		}
		want := map[string]string{"fog": "x-tenant=b\n" + crossed + "=sea", "berth 4 is free": crossed + "=land"}
		if d := cmp.Diff(want, crossing); d != "" {
			t.Errorf("what has crossed (-want +got):\n%s", d)
		}
	})
}

// What the other side does not take is tried three times on its own side, and is a
// dead letter there, with one count. Nobody but the bridge gets the copies.
func TestTheOtherSideFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sea, land, s := between(t)
		land.FailPublishes(landTopic, hosttest.Refused, hosttest.Always)
		sea.FailPublishes(seaTopic, hosttest.Refused, hosttest.Always)
		sea.Deliver(seaTopic, hosttest.Text("fog").With("x-tenant", "a"))
		land.Deliver(landTopic, hosttest.Text("berth 4 is free").With("x-ruststream-retry-count", "9"))
		s.Wait()
		if n := len(sea.Published("bridge/again")); n != 2 {
			t.Errorf("%d copies, want 2", n)
		}
		if n := len(land.Published(landTopic)) + len(sea.Published(seaTopic)); n != 0 {
			t.Errorf("%d messages where everybody reads", n)
		}
		for side, letters := range map[string][]hosttest.Message{"sea": sea.Published("bridge/dead"), "land": land.Published("bridge-dead")} {
			if len(letters) != 1 {
				t.Errorf("%s: dead letters %v, want one", side, letters)
				continue
			}
			counts := strings.Count(strings.ToLower(headers(letters[0])), "x-ruststream-retry-count=")
			if counts > 1 || letters[0].Header("x-longshore-attempts") != "3" {
				t.Errorf("%s: the dead letter has %d counts:\n%s", side, counts, headers(letters[0]))
			}
		}
	})
}
