// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// meterPanics is how often a meter that panics is told of: often enough to be
// seen, seldom enough for one that panics at every message.
const meterPanics = time.Minute

// guardedMeter keeps what a meter throws from the goroutines of the engine.
type guardedMeter struct {
	meter Meter
	log   *slog.Logger

	mu    sync.Mutex
	told  time.Time
	since int // panics since then
}

// Handled implements Meter.
func (g *guardedMeter) Handled(e HandledEvent) {
	returned := false
	defer g.contain("Handled", &returned)
	g.meter.Handled(e)
	returned = true
}

// Settled implements Meter.
func (g *guardedMeter) Settled(e SettledEvent) {
	returned := false
	defer g.contain("Settled", &returned)
	g.meter.Settled(e)
	returned = true
}

// Published implements Meter.
func (g *guardedMeter) Published(e PublishedEvent) {
	returned := false
	defer g.contain("Published", &returned)
	g.meter.Published(e)
	returned = true
}

// EndpointChanged implements Meter.
func (g *guardedMeter) EndpointChanged(e EndpointEvent) {
	returned := false
	defer g.contain("EndpointChanged", &returned)
	g.meter.EndpointChanged(e)
	returned = true
}

// contain is deferred: it logs what a method threw. One that ends its goroutine
// takes the engine's with it, which nothing can stop; to say so and crash is better
// than to stand still.
func (g *guardedMeter) contain(method string, returned *bool) {
	thrown := recover()
	switch {
	case *returned:
		return
	case thrown == nil:
		panic("longshore: Meter." + method + " ended its goroutine with runtime.Goexit, which is the host's; " +
			"t.FailNow and t.Fatal do so: call them in the test's own goroutine")
	}
	g.mu.Lock()
	now := time.Now()
	g.since++
	n := g.since
	quiet := !g.told.IsZero() && now.Sub(g.told) < meterPanics
	if !quiet {
		g.told, g.since = now, 0
	}
	g.mu.Unlock()
	if !quiet {
		g.log.Error("meter panicked; what it was told of is not measured", "method", method, "panic", fmt.Sprint(thrown),
			"count", n, "stack", string(debug.Stack()))
	}
}
