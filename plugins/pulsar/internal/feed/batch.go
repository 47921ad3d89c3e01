// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"sync"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// The most that one batch holds. It is exceeded by the messages of one entry at most.
const (
	batchMessages = 64
	batchBytes    = 256 << 10
)

// mostSpare is how many messages a batch that is used again has room for. One that an
// entry of more has made larger is not kept.
const mostSpare = 1024

// waiting is how many batches of all partitions wait to be taken.
const waiting = 16

// places is how many of most places are used, of which one holds each messages, so that
// a short receiver queue is not read far beyond.
func places(queue, each, most int) int { return min(max((queue+each-1)/each, 1), most) }

// A Batch is messages of one partition in their order, or a word about it.
type Batch struct {
	Partition *Partition
	// Epoch counts the consumers of the partition. What was read in an earlier one and is
	// not acked comes again.
	Epoch    uint64
	Messages []wire.Message
	// Back says that the partition is read again after its consumer was gone: what was
	// delivered with a smaller Epoch comes again. There are no messages.
	Back bool
	// Lost says that the partition is read no more, for its topic is gone or has fewer
	// of them. There are no messages.
	Lost bool

	from    *member // who gets the permits back
	permits int     // that its entries took
	bytes   int     // that its messages keep
}

// Stale reports whether the batch's messages come again by themselves, or were left
// behind by a Seek: they are not to be delivered. It may become so at any time.
func (b *Batch) Stale() bool { return len(b.Messages) > 0 && b.Epoch < b.Partition.valid.Load() }

// batches are those that nobody uses.
type batches struct{ pool sync.Pool }

func (p *batches) take() *Batch {
	if b, ok := p.pool.Get().(*Batch); ok {
		return b
	}
	return &Batch{Messages: make([]wire.Message, 0, batchMessages)}
}

// give takes a batch back: its messages are not kept alive.
func (p *batches) give(b *Batch) {
	if cap(b.Messages) > mostSpare {
		return
	}
	clear(b.Messages)
	*b = Batch{Messages: b.Messages[:0]}
	p.pool.Put(b)
}
