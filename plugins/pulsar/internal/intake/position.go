// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// position is where a message is in its partition.
type position struct {
	place
	batch int32 // topic.NoBatch where the entry is one message
}

// place is where an entry is: a message, or a batch of them.
type place struct{ ledger, entry int64 }

// positionOf reads an id of the library, which gives each message an index.
func positionOf(id pulsar.MessageID) position {
	p := position{place: place{id.LedgerID(), id.EntryID()}, batch: topic.NoBatch}
	if id.BatchSize() > 1 {
		p.batch = id.BatchIdx()
	}
	return p
}

// compare orders positions as the partition does.
func (p position) compare(o position) int {
	return cmp.Or(cmp.Compare(p.ledger, o.ledger), cmp.Compare(p.entry, o.entry), cmp.Compare(p.batch, o.batch))
}

// whole is the id that acks an entry with all that is in it, whatever the library
// knows of its batch. The library counts partitions within a consumer, and a feed's
// consumers have one each.
func (p place) whole() pulsar.MessageID { return pulsar.NewMessageID(p.ledger, p.entry, -1, 0) }
