// SPDX-License-Identifier: Apache-2.0

package wire

import "google.golang.org/protobuf/encoding/protowire"

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

// Counts reports whether a broker counts redeliveries for a type, and sends single
// entries again.
func (t SubscriptionType) Counts() bool { return t == Shared || t == KeyShared }

// Subscribe is what a SUBSCRIBE says. Subscriptions are durable.
type Subscribe struct {
	ID           uint64 // of the consumer, unique within the connection
	Topic        string // full name
	Subscription string
	Name         string // of the consumer, for people; "" = the broker gives one
	Type         SubscriptionType
	Earliest     bool // a subscription that is created begins with the topic's first message
	Create       bool // the topic is created where there is none and the broker creates topics
}

// AppendSubscribe appends a SUBSCRIBE, which is answered by SUCCESS or ERROR.
func AppendSubscribe(dst []byte, request uint64, s Subscribe) []byte {
	return appendCommand(dst, TypeSubscribe, func(b []byte) []byte {
		b = appendText(b, 1, s.Topic)
		b = appendText(b, 2, s.Subscription)
		b = appendVarint(b, 3, uint64(s.Type)) //nolint:gosec // one of the constants
		b = appendVarint(b, 4, s.ID)
		b = appendVarint(b, 5, request)
		if s.Name != "" {
			b = appendText(b, 6, s.Name)
		}
		b = appendBool(b, 13, s.Earliest)
		return appendBool(b, 15, s.Create)
	})
}

// AppendFlow appends a FLOW: so many messages more may be sent to a consumer.
func AppendFlow(dst []byte, consumer uint64, permits uint32) []byte {
	return appendCommand(dst, TypeFlow, func(b []byte) []byte {
		return appendVarint(appendVarint(b, 1, consumer), 2, uint64(permits))
	})
}

// Acked is an entry that is acked, whole or in part.
type Acked struct {
	Ledger, Entry int64
	Left          []uint64 // bits of the messages of a batch that are not acked; nil = the whole entry is
	Size          int32    // messages of the batch, where Left is given
}

// AppendAck appends an ACK of entries one by one. With a request other than 0 it is
// answered by an ACK_RESPONSE.
func AppendAck(dst []byte, request, consumer uint64, acks []Acked) []byte {
	return appendCommand(dst, TypeAck, func(b []byte) []byte {
		b = appendVarint(b, 1, consumer)
		b = appendVarint(b, 2, 0) // Individual
		for i := range acks {
			if a := &acks[i]; a.Left == nil {
				b = appendPosition(b, 3, a.Ledger, a.Entry)
			} else {
				b = appendNested(b, 3, a.appendPart)
			}
		}
		if request != 0 {
			b = appendVarint(b, 8, request)
		}
		return b
	})
}

func (a *Acked) appendPart(b []byte) []byte {
	b = appendVarint(b, 1, uint64(a.Ledger)) //nolint:gosec // uint64 in the protocol, -1 among its values
	b = appendVarint(b, 2, uint64(a.Entry))  //nolint:gosec // as above
	for _, word := range a.Left {
		b = appendVarint(b, 5, word)
	}
	return appendVarint(b, 6, uint64(a.Size)) //nolint:gosec // a count
}

// AppendRedeliver appends a REDELIVER_UNACKNOWLEDGED_MESSAGES: the entries of ids,
// each once, are to be sent again. Without ids it would mean all that the consumer has
// not acked, so then nothing is appended.
func AppendRedeliver(dst []byte, consumer uint64, ids []MessageID) []byte {
	if len(ids) == 0 {
		return dst
	}
	return appendCommand(dst, TypeRedeliver, func(b []byte) []byte {
		b = appendVarint(b, 1, consumer)
		seen := make(map[[2]int64]struct{}, len(ids))
		for i := range ids {
			at := [2]int64{ids[i].Ledger, ids[i].Entry}
			if _, again := seen[at]; !again {
				seen[at] = struct{}{}
				b = appendPosition(b, 2, at[0], at[1])
			}
		}
		return b
	})
}

// AppendSeek appends a SEEK of a subscription to an entry, which is the next that is
// sent. Ledger and entry -1 are the topic's first message, math.MaxInt64 its end. It is
// answered by SUCCESS or ERROR; the broker disconnects the subscription's consumers.
func AppendSeek(dst []byte, request, consumer uint64, ledger, entry int64) []byte {
	return appendCommand(dst, TypeSeek, func(b []byte) []byte {
		b = appendVarint(appendVarint(b, 1, consumer), 2, request)
		return appendPosition(b, 3, ledger, entry)
	})
}

// AppendSeekTime is AppendSeek to the first message published at a time or later, in
// milliseconds since 1970.
func AppendSeekTime(dst []byte, request, consumer uint64, ms int64) []byte {
	return appendCommand(dst, TypeSeek, func(b []byte) []byte {
		b = appendVarint(appendVarint(b, 1, consumer), 2, request)
		return appendVarint(b, 4, uint64(max(ms, 0))) //nolint:gosec // not negative
	})
}

// AppendCloseConsumer appends a CLOSE_CONSUMER, which is answered by SUCCESS or ERROR.
func AppendCloseConsumer(dst []byte, request, consumer uint64) []byte {
	return appendCommand(dst, TypeCloseConsumer, func(b []byte) []byte {
		return appendVarint(appendVarint(b, 1, consumer), 2, request)
	})
}

// AppendLastID appends a GET_LAST_MESSAGE_ID: where the topic of a consumer ends. A
// broker that has no such consumer answers with an ERROR.
func AppendLastID(dst []byte, request, consumer uint64) []byte {
	return appendCommand(dst, TypeLastID, func(b []byte) []byte {
		return appendVarint(appendVarint(b, 1, consumer), 2, request)
	})
}

// appendPosition appends a MessageIdData of an entry as a whole.
func appendPosition(b []byte, number protowire.Number, ledger, entry int64) []byte {
	l, e := uint64(ledger), uint64(entry) //nolint:gosec // uint64 in the protocol, -1 among its values
	b = protowire.AppendTag(b, number, protowire.BytesType)
	b = append(b, byte(2+sizeVarint(l)+sizeVarint(e)), 1<<3)
	b = append(protowire.AppendVarint(b, l), 2<<3)
	return protowire.AppendVarint(b, e)
}
