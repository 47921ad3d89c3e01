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
}

// Acked is an entry that is acked, whole or in part.
type Acked struct {
	Ledger, Entry int64
	Left          []uint64 // bits of the messages of a batch that are not acked; nil = the whole entry is
	Size          int32    // messages of the batch, where Left is given
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

// Compression is how payloads are compressed (enum CompressionType of
// PulsarApi.proto).
type Compression int32

// The kinds of compression.
const (
	NoCompression Compression = iota
	LZ4
	ZLib
	ZSTD
	Snappy
)

// SubscriptionType says who of a subscription's consumers gets a message (enum
// CommandSubscribe.SubType).
type SubscriptionType int32

// The types of subscriptions.
const (
	Exclusive SubscriptionType = iota
	Shared
	Failover
	KeyShared
)

// Delivery is a MESSAGE command with its payload.
type Delivery struct {
	Consumer      uint64
	Ledger, Entry int64
	Partition     int32
	Redelivered   uint32
	Left          []uint64 // bits of the messages of a batch that are not acked yet; nil = all
	Payload       []byte   // what follows the command: checksum, metadata, payload
}

// SendReceipt is a SEND_RECEIPT command.
type SendReceipt struct {
	Producer      uint64
	Sequence      uint64
	Highest       uint64 // the last number of a batch, 0 = not said
	Ledger, Entry int64  // -1 where a broker with deduplication had the message already
	Partition     int32
}
