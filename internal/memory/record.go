// SPDX-License-Identifier: Apache-2.0

package memory

import "container/heap"

// record is one message over its life. All its fields are under the broker's
// lock.
type record struct {
	msg      Message
	queue    *queue
	state    State
	key      int64 // place in the ready heap
	index    int   // in the ready heap, -1 = not in it
	count    uint32
	reason   string
	by       *peer // of a message that only its publisher's process reads
	delivery uint64
	consumer *consumer // that has it, while outstanding and connected
	profile  uint32    // it was delivered under
	session  string    // that holds it, while outstanding on a lost connection
	hold     *alarm    // end of its hold
	due      *alarm    // end of its delay
	released bool      // outstanding, and no verdict will come: released, or lost on the way
	to       *consumer // that it was delivered to last, as the number-th
	number   uint64
	strayed  bool // it is the delivery that was lost on the way
}

// stop ends the record's timers.
func (r *record) stop() {
	for _, t := range []*alarm{r.hold, r.due} {
		if t != nil {
			t.Stop()
		}
	}
	r.hold, r.due = nil, nil
}

// queue is one name. Records stay in it for ever: they are the log that Seek
// goes back over and the account is made from.
type queue struct {
	name    string
	records []*record
	ready   readyHeap
	account Account
	dedup   map[string]bool
	seen    map[string]int // payload and count header, for doubles
	paused  bool
	end     bool // subscriptions end when they have read all
	caught  bool // subscriptions say so when they have read all
	faults  faults

	verdicts []Verdict // with KeepVerdicts
}

// pending counts what is still to be delivered or settled. A delivery that no
// verdict will come for is pending only where it comes back by itself.
func (q *queue) pending() int {
	n := q.account.Queued
	if q.account.Outstanding == 0 {
		return n
	}
	for _, r := range q.records {
		if r.state == Outstanding && (!r.released || r.hold != nil) {
			n++
		}
	}
	return n
}

func newQueue(name string) *queue {
	return &queue{name: name, dedup: map[string]bool{}, seen: map[string]int{}}
}

// push makes a record ready.
func (q *queue) push(r *record) {
	r.set(Queued)
	heap.Push(&q.ready, r)
}

// add takes a new record into the log.
func (q *queue) add(r *record) {
	q.records = append(q.records, r)
	*q.account.of(r.state)++
	q.account.Published++
}

// set moves a record to a state.
func (r *record) set(s State) {
	*r.queue.account.of(r.state)--
	*r.queue.account.of(s)++
	r.state = s
}

// drop takes a record out of the ready ones.
func (q *queue) drop(r *record) {
	if r.index >= 0 {
		heap.Remove(&q.ready, r.index)
	}
}

// readyHeap orders records by key.
type readyHeap []*record

func (h readyHeap) Len() int           { return len(h) }
func (h readyHeap) Less(i, j int) bool { return h[i].key < h[j].key }
func (h readyHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *readyHeap) Push(x any) {
	r := x.(*record)
	r.index = len(*h)
	*h = append(*h, r)
}
func (h *readyHeap) Pop() any {
	old := *h
	r := old[len(old)-1]
	r.index = -1
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return r
}
