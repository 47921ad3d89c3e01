// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// position is where a message is in its partition.
type position struct {
	place
	batch int32 // wire.NoBatch where the entry is one message
}

// place is where an entry is: a message, or a batch of them.
type place struct{ ledger, entry int64 }

// positionOf is the position of a message. A batch of one message is none.
func positionOf(id wire.MessageID) position {
	p := position{place: place{id.Ledger, id.Entry}, batch: wire.NoBatch}
	if id.Size > 1 {
		p.batch = id.Batch
	}
	return p
}

// compare orders positions as the partition does.
func (p position) compare(o position) int {
	return cmp.Or(cmp.Compare(p.ledger, o.ledger), cmp.Compare(p.entry, o.entry), cmp.Compare(p.batch, o.batch))
}

// id asks for an entry with all that is in it.
func (p place) id() wire.MessageID {
	return wire.MessageID{Ledger: p.ledger, Entry: p.entry, Batch: wire.NoBatch}
}

// whole acks it.
func (p place) whole() wire.Acked { return wire.Acked{Ledger: p.ledger, Entry: p.entry} }
