// SPDX-License-Identifier: Apache-2.0

package intake

// Ready is how many peers have something that was read, or Own has.
func (in *Intake) Ready() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := 0
	for f := in.ready.head; f != nil; f = f.next {
		n++
	}
	return n
}

// Waiting is how many messages are in the own queue.
func (in *Intake) Waiting() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.own.copies.len() + in.own.published.len()
}

// BatchMessages is the most of one batch.
const BatchMessages = maxBatch
