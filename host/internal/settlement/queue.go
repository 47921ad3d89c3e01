// SPDX-License-Identifier: Apache-2.0

package settlement

// queue is a list of publishes from which any one can be taken out.
type queue struct{ first, last *publish }

// push appends p.
func (q *queue) push(p *publish) {
	p.list, p.prev, p.next = q, q.last, nil
	if q.last == nil {
		q.first = p
	} else {
		q.last.next = p
	}
	q.last = p
}

// unshift puts p in front.
func (q *queue) unshift(p *publish) {
	p.list, p.prev, p.next = q, nil, q.first
	if q.first == nil {
		q.last = p
	} else {
		q.first.prev = p
	}
	q.first = p
}

// remove takes p out.
func (q *queue) remove(p *publish) {
	if p.prev == nil {
		q.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		q.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.list, p.prev, p.next = nil, nil, nil
}
