// SPDX-License-Identifier: Apache-2.0

package message

import (
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
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

// ID is the id of a message of the partition. The client gives its messages the
// partition's place among the topics of its consumer, and each one an index.
func (s *Source) ID(id pulsar.MessageID) topic.ID {
	own := topic.ID{Ledger: id.LedgerID(), Entry: id.EntryID(), Partition: int32(s.Topic.Partition), Batch: topic.NoBatch}
	if id.BatchSize() > 1 {
		own.Batch = id.BatchIdx()
	}
	return own
}

// eventTime is the event time of a message in milliseconds since 1970, 0 = none.
func eventTime(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(t.UnixMilli(), 0)
}
