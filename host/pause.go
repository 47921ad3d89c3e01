// SPDX-License-Identifier: Apache-2.0

package host

import (
	"sync"

	"github.com/longshore-go/longshore/host/internal/settlement"
)

// pausing is whether a subscription is paused, over all runs.
type pausing struct {
	mu     sync.Mutex
	paused bool
	lane   *settlement.Lane // of the run that serves; nil = none does
	seeks  bool             // its transport can move it
}

// Pause has the subscription begin nothing more, from now on until Resume.
// Handlers that run go on; what has arrived waits unsettled with the host, and the
// transport is asked for nothing more. It may be called at any time, from any
// goroutine, before Run as well: the host is ready with a paused subscription. While one
// is paused the host does not end by itself, since it has not read all there is. A
// stop ends as ever; of what waits, what would be lost is handled before. Pause,
// Resume and Paused panic for a Subscription that no endpoint has made.
func (s *Subscription) Pause() {
	s.exists("Subscription.Pause")
	s.pause(true)
}

// Resume ends a pause. Without one it does nothing.
func (s *Subscription) Resume() {
	s.exists("Subscription.Resume")
	s.pause(false)
}

// Paused reports whether the subscription is paused by [Subscription.Pause]; a
// [CircuitBreaker] is nothing to it.
func (s *Subscription) Paused() bool {
	s.exists("Subscription.Paused")
	s.pausing.mu.Lock()
	defer s.pausing.mu.Unlock()
	return s.pausing.paused
}

func (s *Subscription) pause(on bool) {
	p := &s.pausing
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = on
	switch {
	case p.lane == nil:
	case on:
		p.lane.Pause()
	default:
		p.lane.Resume()
	}
}

// begin makes the lane of a run.
func (p *pausing) begin(o settlement.LaneOptions, seeks bool) *settlement.Lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	o.Paused = p.paused
	p.lane, p.seeks = settlement.NewLane(o), seeks
	return p.lane
}

// end forgets the lane of a run.
func (p *pausing) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lane = nil
}
