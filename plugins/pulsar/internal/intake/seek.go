// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// Seek moves all partitions, or the one that an exact position is of. Acks leave
// first: behind the move they would be taken for what comes again. Everything that was
// received is void; in partitions that stay where they are it comes again.
func (in *Intake) Seek(ctx context.Context, to pluginapi.Position) error {
	if left := in.flush(ctx); left > 0 {
		return fault.Passing(core.FaultUnavailable, "seek again", "seek: the broker has not answered %d acks", left)
	}
	moves := func(*lane) bool { return true }
	if to.Kind == pluginapi.PositionExact {
		n, _, err := topic.DecodePosition(to.Value)
		if err != nil {
			return err
		}
		moves = func(l *lane) bool { return l.partition.Topic == n }
	}
	if err := in.feed.Seek(ctx, to); err != nil {
		return err
	}
	now := time.Now()
	in.mu.Lock()
	for _, l := range in.lanes {
		l.move(moves(l), now)
	}
	nacks := in.takeNacks()
	in.returns = in.returns[:0] // the caller says that all is void
	in.mu.Unlock()
	in.nack(nacks)
	return nil
}

// move ends all deliveries. in.mu is held.
func (l *lane) move(moved bool, now time.Time) {
	if moved {
		l.calm()
		for _, e := range l.table {
			if e.state != stateAcking {
				l.drop(e, now)
			}
		}
		l.again, l.kept, l.acked = nil, nil, nil
		clear(l.batches)
		return
	}
	for _, e := range l.table {
		if e.state == stateHanded || e.state == stateHeld {
			l.in.giveBack(e, now)
		}
	}
}
