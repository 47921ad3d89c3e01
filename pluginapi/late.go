// SPDX-License-Identifier: Apache-2.0

package pluginapi

// lateBound is how many voided deliveries are kept for a late ack; the oldest
// go first. It covers the largest default window twice.
const lateBound = 2048

// lateTable keeps the handles of voided deliveries where the subscription is a
// LateAcker. The zero value keeps nothing.
type lateTable struct {
	on      bool
	handles map[uint64]any
	order   []uint64 // by age; ids that were taken since stay until their turn
}

func (t *lateTable) add(id uint64, handle any) {
	if !t.on {
		return
	}
	if t.handles == nil {
		t.handles = make(map[uint64]any)
	}
	t.handles[id] = handle
	t.order = append(t.order, id)
	for len(t.order) > lateBound {
		delete(t.handles, t.order[0])
		t.order = t.order[1:]
	}
}

// clear forgets all: an ack of what was read before a seek would take away what
// is to come again.
func (t *lateTable) clear() { t.handles, t.order = nil, nil }

// within appends the ids from first to last, ascending by age.
func (t *lateTable) within(ids []uint64, first, last uint64) []uint64 {
	for _, id := range t.order {
		if _, ok := t.handles[id]; ok && id >= first && id <= last {
			ids = append(ids, id)
		}
	}
	return ids
}

// take returns a handle and forgets it.
func (t *lateTable) take(id uint64) (any, bool) {
	h, ok := t.handles[id]
	delete(t.handles, id)
	return h, ok
}
