// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore/pluginapi"
)

// lease is one delivery until its verdict, and the Handle of it.
type lease struct {
	id    string
	count int64
	until time.Time // then anybody may claim the entry; a moment behind the server's clock
}

// leases are the deliveries of a subscription that have no verdict. Receive adds
// and expires them, Settle ends them.
type leases struct {
	mu    sync.Mutex
	byID  map[string]*lease
	voids []pluginapi.Void // for the next Receive
	dues  []time.Time      // when what was given back is due, ascending
}

// add holds a delivery of an entry. An earlier one that is still held is void:
// the server has given the entry out again.
func (l *leases) add(e entry, until time.Time) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.byID[e.id]; old != nil {
		l.void(old, true)
	}
	x := &lease{id: e.id, count: e.count, until: until}
	l.byID[e.id] = x
	return x
}

// void ends a delivery without a verdict; l.mu is held.
func (l *leases) void(x *lease, returns bool) {
	delete(l.byID, x.id)
	l.voids = append(l.voids, pluginapi.Void{Handles: []any{x}, Returns: returns})
}

// end takes x out: it has its verdict, or is released. A later delivery of an
// entry that is acked is void for good.
func (l *leases) end(x *lease, acked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch now := l.byID[x.id]; {
	case now == x:
		delete(l.byID, x.id)
	case now != nil && acked:
		l.void(now, false)
	}
}

// extend lets x last longer.
func (l *leases) extend(x *lease, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x.until = until
}

// expire voids what has been held for too long, and returns all that is void.
func (l *leases) expire(now time.Time) []pluginapi.Void {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.byID {
		if !now.Before(x.until) {
			l.void(x, true)
			l.due(x.until)
		}
	}
	voids := l.voids
	l.voids = nil
	return voids
}

// clear voids everything, for good.
func (l *leases) clear() pluginapi.Void {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.byID)
	l.voids, l.dues = nil, nil
	return pluginapi.Void{All: true}
}

// nextEnd returns when the next delivery expires, at the latest limit.
func (l *leases) nextEnd(limit time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.byID {
		if x.until.Before(limit) {
			limit = x.until
		}
	}
	return limit
}

// requeued notes when an entry is due.
func (l *leases) requeued(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due(at)
}

// due keeps a time to the next millisecond but one, which is not before the
// server's. As there are not many milliseconds in a hold, the list stays short.
// l.mu is held.
func (l *leases) due(at time.Time) {
	at = at.Truncate(time.Millisecond).Add(2 * time.Millisecond)
	if i, found := slices.BinarySearchFunc(l.dues, at, time.Time.Compare); !found {
		l.dues = slices.Insert(l.dues, i, at)
	}
}

// nextDue returns when the next entry is due, at the latest limit.
func (l *leases) nextDue(limit time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.dues) > 0 && l.dues[0].Before(limit) {
		return l.dues[0]
	}
	return limit
}

// taken forgets what was due by now: the server has been asked for it.
func (l *leases) taken(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dues = slices.DeleteFunc(l.dues, func(at time.Time) bool { return !at.After(now) })
}
