// SPDX-License-Identifier: Apache-2.0

package settlement

import "sync/atomic"

// recentMost is how many messages a lane tells apart, for each thing that it
// remembers of them. Beyond it the one that was entered first is forgotten.
const recentMost = 4096

// recent remembers something of messages, by identity. All but any is guarded by
// the lane's lock.
type recent[V any] struct {
	any     atomic.Bool // something is remembered
	entries map[string]*recentEntry[V]
	oldest  *recentEntry[V]
	newest  *recentEntry[V]
}

type recentEntry[V any] struct {
	identity string
	value    V
	older    *recentEntry[V]
	newer    *recentEntry[V]
}

// get returns what is remembered of a message, nil = nothing.
func (r *recent[V]) get(identity []byte) *V {
	if e := r.entries[string(identity)]; e != nil {
		return &e.value
	}
	return nil
}

// enter returns what is remembered of a message, the zero value where it was
// nothing.
func (r *recent[V]) enter(identity []byte) *V {
	e := r.entries[string(identity)]
	if e == nil {
		if len(r.entries) >= recentMost {
			r.remove(r.oldest)
		}
		if r.entries == nil {
			r.entries = make(map[string]*recentEntry[V])
		}
		e = &recentEntry[V]{identity: string(identity)}
		r.entries[e.identity] = e
		r.any.Store(true)
		r.append(e)
	}
	return &e.value
}

// forget forgets a message that does not come back.
func (r *recent[V]) forget(identity []byte) {
	if e := r.entries[string(identity)]; e != nil {
		r.remove(e)
	}
}

// clear forgets all messages.
func (r *recent[V]) clear() {
	r.entries, r.oldest, r.newest = nil, nil, nil
	r.any.Store(false)
}

func (r *recent[V]) append(e *recentEntry[V]) {
	e.older = r.newest
	if r.newest == nil {
		r.oldest = e
	} else {
		r.newest.newer = e
	}
	r.newest = e
}

func (r *recent[V]) remove(e *recentEntry[V]) {
	delete(r.entries, e.identity)
	r.any.Store(len(r.entries) > 0)
	if e.older == nil {
		r.oldest = e.newer
	} else {
		e.older.newer = e.newer
	}
	if e.newer == nil {
		r.newest = e.older
	} else {
		e.newer.older = e.older
	}
}
