// SPDX-License-Identifier: Apache-2.0

package topic

import "slices"

// Table finds what belongs to the filters that match a topic. The zero value is
// empty. It may be read by several goroutines while nobody changes it.
type Table[V any] struct {
	topics  map[string][]V // of filters without wildcards
	filters []entry[V]     // of the others
}

type entry[V any] struct {
	filter string
	value  V
}

// Add enters a value under a filter, without its share group. Several may stand
// under one.
func (t *Table[V]) Add(filter string, v V) {
	if HasWildcard(filter) {
		t.filters = append(t.filters, entry[V]{filter, v})
		return
	}
	if t.topics == nil {
		t.topics = map[string][]V{}
	}
	t.topics[filter] = append(t.topics[filter], v)
}

// Remove takes the values of a filter out that gone reports true for.
func (t *Table[V]) Remove(filter string, gone func(V) bool) {
	if HasWildcard(filter) {
		t.filters = slices.DeleteFunc(t.filters, func(e entry[V]) bool { return e.filter == filter && gone(e.value) })
		return
	}
	if left := slices.DeleteFunc(t.topics[filter], gone); len(left) > 0 {
		t.topics[filter] = left
	} else {
		delete(t.topics, filter)
	}
}

// Match appends the values of all filters that match a topic, in no order that is
// promised. It takes no memory but dst's.
func (t *Table[V]) Match(dst []V, topic []byte) []V {
	dst = append(dst, t.topics[string(topic)]...)
	for i := range t.filters {
		if Matches(t.filters[i].filter, topic) {
			dst = append(dst, t.filters[i].value)
		}
	}
	return dst
}
