// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/memory"
)

// Crash kills the plugin of an endpoint as kill -9 does, and returns when it is
// dead and the broker has let go of what it had unsettled. The host starts
// another one after its pause (host.WithRestartBackoff); handlers in work run
// on. It fails the test where the endpoint has no running plugin.
func (b *Broker) Crash(tb testing.TB, endpoint string) {
	tb.Helper()
	b.mu.Lock()
	g := b.running[endpoint]
	names := slices.Sorted(maps.Keys(b.running))
	b.mu.Unlock()
	if g == nil {
		tb.Fatalf("hosttest: crash endpoint %q: it has no plugin on this broker; %s", endpoint, listed("those that have are", names))
	}
	select {
	case <-g.Done():
		tb.Fatalf("hosttest: crash endpoint %q: its plugin is dead already, and the host has not started another one yet", endpoint)
	default:
	}
	g.Kill()
	w := b.wait(tb, "the plugin of endpoint "+endpoint+" to die")
	select {
	case <-g.Done():
	case <-w.ctx.Done():
		w.fail(tb, "it is still there")
	}
	w.until(tb, func(v memory.View) (bool, string) {
		return !v.Connected(endpoint, g.Generation()), "it is still connected"
	})
	b.mu.Lock()
	services := slices.Clone(b.services)
	b.mu.Unlock()
	for _, s := range services {
		s.notices(endpoint, g.Generation())
	}
}

// Disconnect ends the connection of an endpoint's plugin to the broker, which
// goes on living and connects again. It fails the test where there is none.
func (b *Broker) Disconnect(tb testing.TB, endpoint string) {
	tb.Helper()
	w := b.wait(tb, "endpoint "+endpoint+" to be connected")
	defer w.end()
	c, err := b.queues.Client(w.ctx, endpoint)
	if err != nil {
		w.fail(tb, "it is not")
	}
	c.Disconnect()
}

// listed names things after an introduction.
func listed(what string, names []string) string {
	if len(names) == 0 {
		return what + " none"
	}
	return what + " " + strings.Join(names, ", ")
}
