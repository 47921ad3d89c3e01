// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Host holds the endpoints, subscriptions and publishers of a service and runs
// them. Registration is for one goroutine, before Run; Run is called once. All
// other methods may be called from any goroutine. [New] makes one; the methods of any
// other panic.
type Host struct {
	options    options
	endpoints  []*Endpoint
	byName     map[string]*Endpoint
	publishers []*publisher
	found      []Finding   // what was wrong at registration
	registered int         // how often something was registered
	declaredAt int         // what registered was when the defaults were put under all rules
	undeclared []Finding   // what was wrong with them
	requesting PublishNext // what requests pass through first; nil = nothing

	mu    sync.Mutex
	ran   bool
	alive context.Context // ends at an abort
	abort context.CancelFunc
	run   atomic.Pointer[run] // what serves; nil before and after

	state  State // as Health tells it
	since  time.Time
	reason string
	stop   time.Time // when the stop began
	shown  *run      // what Health looks at; nil = nothing was opened
}

// New returns a host without endpoints.
func New(opts ...Option) *Host {
	h := &Host{byName: make(map[string]*Endpoint), state: StateNew, since: time.Now()}
	h.alive, h.abort = context.WithCancel(context.Background())
	h.found = h.options.apply(opts)
	next, _ := wrapLeaving(h.options.middleware)
	h.requesting = h.options.tracedLeaving(next)
	return h
}

// registering panics when the host runs already: what is declared then would
// silently do nothing.
func (h *Host) registering(what string) {
	h.made(what)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ran {
		panic("longshore: " + what + " after Run; register everything before Run is called")
	}
	h.registered++
}

// made panics where New did not make the host.
func (h *Host) made(what string) {
	if h == nil || h.byName == nil {
		panic("longshore: " + what + " of a Host that New did not make; use what New returned")
	}
}

// complain keeps a finding for the start.
func (h *Host) complain(f Finding) { h.found = append(h.found, f) }

// Abort ends a running host at once: nothing is waited for, and nothing that is
// in work is settled. It does nothing when called again. Run returns when all
// plugins are gone.
func (h *Host) Abort() {
	h.made("Abort")
	h.abort()
}

// Ready reports whether the host serves: every endpoint is connected, every
// subscription is open, and no stop has begun.
func (h *Host) Ready() bool {
	h.made("Ready")
	r := h.run.Load()
	return r != nil && r.ready()
}
