// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/feed"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// Over returns an intake that reads a source and asks of partitions what is given.
func Over(c Config, s source, ack func(*feed.Partition, []wire.Acked) error, nack func(*feed.Partition, []wire.MessageID), epoch func(*feed.Partition) uint64) *Intake {
	in := newIntake(c, calls{ack, nack, epoch})
	in.feed = s
	return in
}

// Flush waits until no ack waits for its answer, and returns how many do.
func (in *Intake) Flush(ctx context.Context) int { return in.flush(ctx) }

// Leftovers is how much it remembers: of messages that are not acked, and bytes that
// are kept to be delivered again.
func (in *Intake) Leftovers() (entries int, retained int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, l := range in.lanes {
		for _, e := range l.table {
			if e.state != stateAcked {
				entries++
			}
		}
	}
	return entries, in.retained
}
