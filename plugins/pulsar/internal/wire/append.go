// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"
)

// ProtocolVersion is the version of the binary protocol that is spoken: that of
// Pulsar 2.10, as newer commands are not used.
const ProtocolVersion = 19

// Auth is how a client says who it is: a method, "" = none, and its data.
type Auth struct {
	Method string // "token", "tls"
	Data   []byte
}

// AppendConnect appends a CONNECT. client names the software, for people who look
// at a broker's connections. It says that credentials can be asked for again, and
// that partition counts can be asked for without creating a topic. A proxy is to pass
// the connection on to a broker, "host:port"; "" = to none.
func AppendConnect(dst []byte, client string, auth Auth, broker string) []byte {
	return appendCommand(dst, TypeConnect, func(b []byte) []byte {
		b = appendText(b, 1, client)
		if auth.Method != "" {
			b = appendBytes(b, 3, auth.Data)
			b = appendText(b, 5, auth.Method)
		}
		b = appendVarint(b, 4, ProtocolVersion)
		if broker != "" {
			b = appendText(b, 6, broker)
		}
		return appendNested(b, 10, func(b []byte) []byte { return appendVarint(appendVarint(b, 1, 1), 5, 1) })
	})
}

// AppendAuthResponse appends the answer to an AUTH_CHALLENGE.
func AppendAuthResponse(dst []byte, client string, auth Auth) []byte {
	return appendCommand(dst, TypeAuthResponse, func(b []byte) []byte {
		b = appendText(b, 1, client)
		b = appendNested(b, 2, func(b []byte) []byte { return appendBytes(appendText(b, 1, auth.Method), 2, auth.Data) })
		return appendVarint(b, 3, ProtocolVersion)
	})
}

// AppendPing appends a PING, which a broker answers with a PONG.
func AppendPing(dst []byte) []byte { return appendCommand(dst, TypePing, none) }

// AppendPong appends the answer to a PING.
func AppendPong(dst []byte) []byte { return appendCommand(dst, TypePong, none) }

// AppendPartitions appends a PARTITIONED_METADATA: how many partitions a topic has.
// create lets the broker make the topic where it makes topics by itself; where the
// broker has not said that it can do without, it is to be true.
func AppendPartitions(dst []byte, request uint64, topic string, create bool) []byte {
	return appendCommand(dst, TypePartitions, func(b []byte) []byte {
		b = appendText(b, 1, topic)
		b = appendVarint(b, 2, request)
		if !create {
			b = appendVarint(b, 6, 0) // metadata_auto_creation_enabled, true unless said
		}
		return b
	})
}

// AppendTopics appends a GET_TOPICS_OF_NAMESPACE for the persistent topics of a
// namespace, "tenant/name".
func AppendTopics(dst []byte, request uint64, namespace string) []byte {
	return appendCommand(dst, TypeTopics, func(b []byte) []byte {
		b = appendVarint(b, 1, request)
		b = appendText(b, 2, namespace)
		return appendVarint(b, 3, 0) // PERSISTENT
	})
}

// AppendLookup appends a LOOKUP: which broker serves a topic. authoritative passes on
// that a broker has said so when it sent the client elsewhere; listener is the
// advertised listener whose address is wanted, "" = the broker's own choice.
func AppendLookup(dst []byte, request uint64, topic string, authoritative bool, listener string) []byte {
	return appendCommand(dst, TypeLookup, func(b []byte) []byte {
		b = appendText(b, 1, topic)
		b = appendVarint(b, 2, request)
		b = appendBool(b, 3, authoritative)
		if listener != "" {
			b = appendText(b, 7, listener)
		}
		return b
	})
}

func none(b []byte) []byte { return b }

// appendCommand appends the frame of a command with these fields, whose number in a
// BaseCommand is that of the command's type.
func appendCommand(dst []byte, t Type, body func([]byte) []byte) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, headerBytes)...)
	dst = appendVarint(dst, 1, uint64(t)) //nolint:gosec // a constant of this package
	dst = appendNested(dst, protowire.Number(t), body)
	n := len(dst) - at - headerBytes
	binary.BigEndian.PutUint32(dst[at:], uint32(n+sizeBytes)) //nolint:gosec // commands are built here, of a few bytes
	binary.BigEndian.PutUint32(dst[at+sizeBytes:], uint32(n)) //nolint:gosec // as above
	return dst
}

// appendNested appends a message with the fields that body appends.
func appendNested(dst []byte, number protowire.Number, body func([]byte) []byte) []byte {
	dst = protowire.AppendTag(dst, number, protowire.BytesType)
	at := len(dst)
	dst = body(dst)
	n := len(dst) - at
	var size [binary.MaxVarintLen64]byte
	k := binary.PutUvarint(size[:], uint64(n)) //nolint:gosec // a length
	dst = append(dst, size[:k]...)
	copy(dst[at+k:], dst[at:at+n])
	copy(dst[at:], size[:k])
	return dst
}

func appendVarint(b []byte, number protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), v)
}

func appendBool(b []byte, number protowire.Number, v bool) []byte {
	return appendVarint(b, number, protowire.EncodeBool(v))
}

func appendBytes(b []byte, number protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
}

func appendText(b []byte, number protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), v)
}

// sizeVarint is the number of bytes of v as a varint.
func sizeVarint(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
