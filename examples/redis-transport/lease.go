// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"
	"time"

	"github.com/longshore-go/longshore/pluginapi"
)

// lease is one delivery, and the Handle of it.
type lease struct {
	id    string
	count int64
	until time.Time // then anybody may claim the entry; never before the server says so
	open  bool      // there is no verdict; else it was given back and is due at until
}

// leases are the deliveries of a subscription whose entries will be due again.
// Receive adds and expires them, Settle ends them.
type leases struct {
	mu    sync.Mutex
	byID  map[string]*lease
	voids []pluginapi.Void // for the next Receive
}

// add holds a delivery of an entry, and returns the void of an earlier one that
// is still held: the server has given the entry out again.
func (l *leases) add(e entry, until time.Time) (*lease, []pluginapi.Void) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var voids []pluginapi.Void
	if old := l.byID[e.id]; old != nil && old.open {
		voids = append(voids, void(old, true))
	}
	x := &lease{id: e.id, count: e.count, until: until, open: true}
	l.byID[e.id] = x
	return x, voids
}

// end takes x out, whose entry is acked or somebody else's.
func (l *leases) end(x *lease, acked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.byID[x.id]
	if now == nil || now != x && !acked {
		return
	}
	delete(l.byID, x.id)
	if now != x && now.open { // a late ack: the later delivery is void, for good
		l.voids = append(l.voids, void(now, false))
	}
}

// move notes that x, open or given back, lasts until then.
func (l *leases) move(x *lease, until time.Time, open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x.until, x.open = until, open
}

// expire takes out what is due, and returns all that is void and whether anything
// was due.
func (l *leases) expire(now time.Time) (voids []pluginapi.Void, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	voids, l.voids = l.voids, nil
	for id, x := range l.byID {
		if now.Before(x.until) {
			continue
		}
		delete(l.byID, id)
		due = true
		if x.open {
			voids = append(voids, void(x, true))
		}
	}
	return voids, due
}

// next returns when something is due, at the latest limit.
func (l *leases) next(limit time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.byID {
		if x.until.Before(limit) {
			limit = x.until
		}
	}
	return limit
}

func void(x *lease, returns bool) pluginapi.Void {
	return pluginapi.Void{Handles: []any{x}, Returns: returns}
}
