// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// A meter that ends the goroutine of the engine, as a test does that fails in it,
// is said, and does not let the host stand still.
func TestMeterThatEndsItsGoroutine(t *testing.T) {
	g := &guardedMeter{meter: exiting{}}
	for name, f := range map[string]func(){
		"Handled":         func() { g.Handled(HandledEvent{}) },
		"Settled":         func() { g.Settled(SettledEvent{}) },
		"Published":       func() { g.Published(PublishedEvent{}) },
		"EndpointChanged": func() { g.EndpointChanged(EndpointEvent{}) },
	} {
		thrown := make(chan any)
		go func() {
			defer func() { thrown <- recover() }()
			f()
		}()
		if got := fmt.Sprint(<-thrown); !strings.HasPrefix(got, "longshore: Meter."+name+" ended its goroutine") {
			t.Errorf("%s: thrown: %s", name, got)
		}
	}
}

// exiting is a meter that ends the goroutine.
type exiting struct{}

func (exiting) Handled(HandledEvent)          { runtime.Goexit() }
func (exiting) Settled(SettledEvent)          { runtime.Goexit() }
func (exiting) Published(PublishedEvent)      { runtime.Goexit() }
func (exiting) EndpointChanged(EndpointEvent) { runtime.Goexit() }
