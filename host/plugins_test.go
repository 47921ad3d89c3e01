// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
)

// A service's own wiring, with a transport and settings that are not there, runs
// on what the test gives in their place.
func TestPluginsAreReplaced(t *testing.T) {
	q := newQueues()
	q.put("orders", "1")
	q.end("orders")
	var seen []string
	s := newService(host.WithPlugins(func(endpoint string, p host.Plugin, settings any) (host.Plugin, any) {
		seen = append(seen, endpoint, p.Name, settings.(map[string]any)["address"].(string))
		return host.Plugin{InProcess: q}, nil
	}))
	in := s.Endpoint("in", host.Plugin{Name: "there-is-no-such-transport"}, map[string]any{"address": "tcp://far"})
	host.Handle(in.Subscription("orders"), acks)
	s.run(t)
	if err := s.result(t); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"in", "there-is-no-such-transport", "tcp://far"}, seen); d != "" {
		t.Errorf("replaced (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"ack 1"}, q.verdicts("orders")); d != "" {
		t.Errorf("verdicts (-want +got):\n%s", d)
	}
}

func TestWithPluginsRefusesNil(t *testing.T) {
	s := newService(host.WithPlugins(nil))
	attach(s.Host, "in", newQueues())
	e := startError(t, s)
	if len(e.Findings) != 1 || e.Findings[0].Option != "WithPlugins" || e.Findings[0].Fix == "" {
		t.Errorf("got %v", e)
	}
}
