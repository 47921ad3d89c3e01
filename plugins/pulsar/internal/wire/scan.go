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
	rest   []byte
	number uint64
	kind   protowire.Type
	varint uint64 // of a varintKind
	bytes  []byte // of a bytesKind
	broken bool   // the message is none
}

// next goes to the next field of a kind with a value above. It is false at the end, and
// where the message is broken.
func (s *scan) next() bool {
	for len(s.rest) > 0 {
		tag, ok := s.uvarint()
		if !ok || tag>>3 == 0 || tag>>3 > uint64(protowire.MaxValidNumber) {
			break
		}
		s.number, s.kind = tag>>3, protowire.Type(tag&7) //nolint:gosec // three bits
		switch s.kind {
		case varintKind:
			if s.varint, ok = s.uvarint(); ok {
				s.bytes = nil
				return true
			}
		case bytesKind:
			var n uint64
			if n, ok = s.uvarint(); ok && n <= uint64(len(s.rest)) {
				s.varint, s.bytes, s.rest = 0, s.rest[:n:n], s.rest[n:]
				return true
			}
			ok = false
		default:
			n := protowire.ConsumeFieldValue(protowire.Number(s.number), s.kind, s.rest) //nolint:gosec // valid, see above
			if ok = n >= 0; ok {
				s.rest = s.rest[n:]
			}
		}
		if !ok {
			break
		}
	}
	s.broken = len(s.rest) > 0 || s.broken
	return false
}

func (s *scan) uvarint() (uint64, bool) {
	if len(s.rest) > 0 && s.rest[0] < 0x80 {
		v := uint64(s.rest[0])
		s.rest = s.rest[1:]
		return v, true
	}
	v, n := binary.Uvarint(s.rest)
	if n <= 0 {
		s.broken = true
		return 0, false
	}
	s.rest = s.rest[n:]
	return v, true
}

// int32 is the field's value as an int32 or an enum.
func (s *scan) int32() int32 { return int32(s.varint) } //nolint:gosec // int32 and enums in the protocol

// int64 is the field's value as an int64, or as a uint64 with -1 among its values.
func (s *scan) int64() int64 { return int64(s.varint) } //nolint:gosec // as said
