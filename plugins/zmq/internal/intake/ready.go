// SPDX-License-Identifier: Apache-2.0

package intake

// ready is who has something, in order; the zero value is empty.
type ready struct{ head, tail *feed }

func (r *ready) empty() bool { return r.head == nil }

// push puts a feed behind the others.
func (r *ready) push(f *feed) {
	f.next = nil
	if r.tail == nil {
		r.head = f
	} else {
		r.tail.next = f
	}
	r.tail = f
}

// pop takes the first feed, nil = there is none.
func (r *ready) pop() *feed {
	f := r.head
	if f == nil {
		return nil
	}
	r.head = f.next
	if r.head == nil {
		r.tail = nil
	}
	f.next = nil
	return f
}
