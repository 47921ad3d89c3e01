// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/longshore-go/longshore/core"
)

// Field numbers up to 15 have one byte of tag: number << 3 | wire type. All
// fields of the hot messages are below 16.
const (
	wireVarint = 0
	wireBytes  = 2
	tagSize    = 1
)

// sizeVarint is the size of a varint. Most have one byte.
func sizeVarint(v uint64) int {
	if v < 1<<7 {
		return 1
	}
	return protowire.SizeVarint(v)
}

// sizeUint is the size of a varint field, which is left out when it is 0.
func sizeUint(v uint64) int {
	if v == 0 {
		return 0
	}
	return tagSize + sizeVarint(v)
}

// sizeBytes is the size of a field of n bytes, which is left out when it is
// empty.
func sizeBytes(n int) int {
	if n == 0 {
		return 0
	}
	return sizeMessage(n)
}

// sizeMessage is the size of an embedded message of n bytes, empty or not.
func sizeMessage(n int) int { return tagSize + sizeVarint(uint64(n)) + n }

// sizeBool is the size of a bool field.
func sizeBool(v bool) int {
	if v {
		return tagSize + 1
	}
	return 0
}

func appendVarint(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func appendUint(b []byte, field byte, v uint64) []byte {
	if v == 0 {
		return b
	}
	return appendVarint(append(b, field<<3|wireVarint), v)
}

func appendBool(b []byte, field byte, v bool) []byte {
	if v {
		b = append(b, field<<3|wireVarint, 1)
	}
	return b
}

func appendBytes(b []byte, field byte, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return append(appendLength(b, field, len(v)), v...)
}

func appendString(b []byte, field byte, v string) []byte {
	if len(v) == 0 {
		return b
	}
	return append(appendLength(b, field, len(v)), v...)
}

// appendLength opens an embedded message or a field of n bytes.
func appendLength(b []byte, field byte, n int) []byte {
	return appendVarint(append(b, field<<3|wireBytes), uint64(n))
}

// sizeHeader is the size of a Header's content.
func sizeHeader(h *core.Header) int { return sizeBytes(len(h.Name)) + sizeBytes(len(h.Value)) }

// sizeHeaders is the size of a repeated field of headers.
func sizeHeaders(hs core.Headers) int {
	n := 0
	for i := range hs {
		n += sizeMessage(sizeHeader(&hs[i]))
	}
	return n
}

func appendHeaders(b []byte, field byte, hs core.Headers) []byte {
	for i := range hs {
		h := &hs[i]
		b = appendLength(b, field, sizeHeader(h))
		b = appendString(b, 1, h.Name)
		b = appendBytes(b, 2, h.Value)
	}
	return b
}

// appendPart appends an embedded message that generated code writes. Writing it
// before anything is sent keeps one that cannot travel from ending the stream.
func appendPart(b []byte, field byte, m proto.Message, limit int) ([]byte, *core.Fault) {
	n := proto.Size(m)
	if f := checkPart(m, n, limit); f != nil {
		return b, f
	}
	out, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(appendLength(b, field, n), m)
	if err != nil {
		name := m.ProtoReflect().Descriptor().Name()
		return b, &core.Fault{Code: core.FaultInvalid, Message: fmt.Sprintf("encode %s: %v", name, err)}
	}
	return out, nil
}

// checkPart refuses an embedded message of n bytes that is over a limit.
func checkPart(m proto.Message, n, limit int) *core.Fault {
	if n += wrapping; n > limit {
		return TooLarge(string(m.ProtoReflect().Descriptor().Name())+" on the wire", n, limit)
	}
	return nil
}
