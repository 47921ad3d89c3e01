// SPDX-License-Identifier: Apache-2.0

package message

import (
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// Source is what the deliveries of one partition have in common. It does not
// change; any goroutine may use it.
type Source struct {
	Topic topic.Name // the topic or its partition
	As    string     // the topic as subscribed, in full for patterns: the deliveries' name
	Scope string     // the partition's name in full

	base string // the topic's name in full
}

// NewSource returns the source of a partition whose topic is subscribed as as.
func NewSource(n topic.Name, as string) *Source {
	return &Source{Topic: n, As: as, Scope: n.String(), base: n.Base().String()}
}

// ID is the id of a message of the partition. One that is alone in its entry has no
// index, though its producer has made a batch of it.
func (s *Source) ID(id wire.MessageID) topic.ID {
	own := topic.ID{Ledger: id.Ledger, Entry: id.Entry, Partition: int32(s.Topic.Partition), Batch: topic.NoBatch}
	if id.Size > 1 {
		own.Batch = id.Batch
	}
	return own
}
