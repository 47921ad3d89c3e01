// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"encoding/binary"
	"time"

	"github.com/longshore-go/longshore/core"
)

// PositionKind says where to seek to; the numbers are pluginapi's.
type PositionKind uint8

// The kinds of positions.
const (
	_                 PositionKind = iota
	PositionBeginning              // the first message of the log
	PositionEnd                    // behind the last
	PositionTime                   // the first after Time
	PositionExact                  // the message ID
)

// Position is a place in a queue's log.
type Position struct {
	Kind PositionKind
	Time time.Time
	ID   uint64
}

// Seek moves all subscriptions of a queue, as an administrator does: deliveries
// under way become void, messages from the position on are delivered (again),
// those before it are taken as acked.
func (b *Broker) Seek(queue string, to Position) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seek(b.queue(queue), to)
	b.pump()
}

func (b *Broker) seek(q *queue, to Position) {
	var back, skipped []*record
	for _, r := range q.records {
		if r.state == Outstanding {
			if to.reaches(r) {
				back = append(back, r)
			} else {
				skipped = append(skipped, r)
			}
		}
	}
	b.void(back, true, "")
	b.void(skipped, false, "")
	for _, r := range q.records {
		switch {
		case !to.reaches(r):
			if r.state == Queued || r.state == Lost && contains(skipped, r) {
				b.finish(r, Acked, "skipped by a seek")
			}
		case r.state == Acked || r.state == Sent:
			r.key = int64(r.msg.ID)
			b.back(r, core.OrderTotal, 0)
		}
	}
}

// reaches reports whether a record is at the position or behind it.
func (p Position) reaches(r *record) bool {
	switch p.Kind {
	case PositionBeginning:
		return true
	case PositionTime:
		return r.msg.PublishedAt.After(p.Time)
	case PositionExact:
		return r.msg.ID >= p.ID
	default:
		return false
	}
}

func contains(rs []*record, r *record) bool {
	for _, o := range rs {
		if o == r {
			return true
		}
	}
	return false
}

func positionID(b []byte) uint64 { return binary.BigEndian.Uint64(b) }
