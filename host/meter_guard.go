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
	defer g.contain("Handled")
	g.meter.Handled(e)
}

// Settled implements Meter.
func (g *guardedMeter) Settled(e SettledEvent) {
	defer g.contain("Settled")
	g.meter.Settled(e)
}

// Published implements Meter.
func (g *guardedMeter) Published(e PublishedEvent) {
	defer g.contain("Published")
	g.meter.Published(e)
}

// EndpointChanged implements Meter.
func (g *guardedMeter) EndpointChanged(e EndpointEvent) {
	defer g.contain("EndpointChanged")
	g.meter.EndpointChanged(e)
}

// contain is deferred: it logs what a method threw.
func (g *guardedMeter) contain(method string) {
	thrown := recover()
	if thrown == nil {
		return
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
