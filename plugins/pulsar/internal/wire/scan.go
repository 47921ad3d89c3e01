// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// The kinds of fields with a value.
const (
	varintKind = protowire.VarintType
	bytesKind  = protowire.BytesType
)

// scan walks through the fields of a message without allocating. Bytes that it
// returns share the message's memory, with no capacity beyond their end.
type scan struct {
	b      []byte
	at     int
	number uint64
	kind   protowire.Type
	varint uint64 // 0 in a field of another kind
	bytes  []byte // nil in a field of another kind
	broken bool   // the message is none
}

// next goes to the next field of a kind with a value above. It is false at the end, and
// where the message is broken.
func (s *scan) next() bool {
	for s.at < len(s.b) && !s.broken {
		tag := s.uvarint()
		s.number, s.kind = tag>>3, protowire.Type(tag&7) //nolint:gosec // three bits
		if s.number == 0 || s.number > uint64(protowire.MaxValidNumber) {
			s.broken = true
			return false
		}
		switch s.kind {
		case varintKind:
			s.varint, s.bytes = s.uvarint(), nil
			return !s.broken
		case bytesKind:
			n := s.uvarint()
			if s.broken || n > uint64(len(s.b)-s.at) {
				s.broken = true
				return false
			}
			end := s.at + int(n) //nolint:gosec // not beyond the end
			s.varint, s.bytes, s.at = 0, s.b[s.at:end:end], end
			return true
		default:
			n := protowire.ConsumeFieldValue(protowire.Number(s.number), s.kind, s.b[s.at:]) //nolint:gosec // valid, see above
			if s.broken = s.broken || n < 0; !s.broken {
				s.at += n
			}
		}
	}
	return false
}

// uvarint reads a number.
func (s *scan) uvarint() uint64 {
	if at := s.at; at < len(s.b) && s.b[at] < 0x80 {
		s.at = at + 1
		return uint64(s.b[at])
	}
	return s.long()
}

// long is uvarint for a number of more than a byte.
func (s *scan) long() uint64 {
	v, n := binary.Uvarint(s.b[min(s.at, len(s.b)):])
	if n <= 0 {
		s.broken = true
		return 0
	}
	s.at += n
	return v
}

// int32 is the field's value as an int32 or an enum.
func (s *scan) int32() int32 { return int32(s.varint) } //nolint:gosec // int32 and enums in the protocol

// int64 is the field's value as an int64, or as a uint64 with -1 among its values.
func (s *scan) int64() int64 { return int64(s.varint) } //nolint:gosec // as said
