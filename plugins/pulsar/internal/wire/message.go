// SPDX-License-Identifier: Apache-2.0

package wire

// NoBatch is the index of a message that is an entry by itself.
const NoBatch = -1

// MessageID is where a message is in its partition.
type MessageID struct {
	Ledger, Entry int64
	Batch         int32 // index within the entry, NoBatch = the entry is one message
	Size          int32 // messages of the entry; 0 where Batch is NoBatch
}

// Property is a name with its value, as the producer has written them.
type Property struct{ Name, Value []byte }

// Message is a message that was received. All bytes lie in the memory of its frame,
// which belongs to whoever has the message and is not used again.
type Message struct {
	ID          MessageID
	Redelivered uint32 // how often its entry was sent before, by the broker's count
	Key         []byte
	OrderingKey []byte
	PublishTime int64 // milliseconds since 1970
	EventTime   int64 // milliseconds since 1970, 0 = none
	Properties  []Property
	Payload     []byte
	// Left has the bits of the messages of a batch that have come, where others of it have
	// not: those are acked, or were compacted away. nil = all have come. It is shared by
	// them and not to be changed.
	Left []uint64
}

// Outgoing is a message to be published. Nothing of it is changed or kept by the
// functions that write it.
type Outgoing struct {
	Key         string
	OrderingKey string
	EventTime   int64 // milliseconds since 1970, 0 = none
	DeliverAt   int64 // milliseconds since 1970, 0 = at once
	Properties  []OutgoingProperty
	Payload     []byte
	Sequence    *int64 // for deduplication, nil = the producer's own
}

// OutgoingProperty is a property of an Outgoing.
type OutgoingProperty struct {
	Name  string
	Value []byte
}
