// SPDX-License-Identifier: Apache-2.0

package pluginapi

import "time"

// hold is one delivery that waits.
type hold struct {
	verdict  Verdict
	scope    string
	due      time.Time
	seq      uint64
	index    int // in the heap; -1 = left it
	accepted bool
}

// holds is a heap by due time, then by age.
type holds []*hold

func (q holds) Len() int { return len(q) }

func (q holds) Less(i, k int) bool {
	if !q[i].due.Equal(q[k].due) {
		return q[i].due.Before(q[k].due)
	}
	return q[i].seq < q[k].seq
}

func (q holds) Swap(i, k int) {
	q[i], q[k] = q[k], q[i]
	q[i].index, q[k].index = i, k
}

func (q *holds) Push(x any) {
	h, _ := x.(*hold)
	h.index = len(*q)
	*q = append(*q, h)
}

func (q *holds) Pop() any {
	old := *q
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	x.index = -1
	return x
}
