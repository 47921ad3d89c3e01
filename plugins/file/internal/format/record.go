// SPDX-License-Identifier: Apache-2.0

package format

import "encoding/binary"

// Record is a record as it was read. Key and Payload share memory with what it
// was read from, or with the parser's Spill where beacons cut it.
type Record struct {
	Key      []byte
	Shard    uint64
	Sequence uint64
	Time     int64 // ms since the epoch
	Payload  []byte
	Checksum uint16 // as the record says it
}

// RecordLen is the length of a record, beacons not counted.
func RecordLen[T string | []byte](key T, payload int) int {
	return RecordOverhead + len(key) + payload
}

// AppendRecord appends a record without a beacon in it. The key must be valid,
// the payload no longer than MaxPayload.
func AppendRecord(dst []byte, h Head, payload []byte) []byte {
	dst = AppendHead(dst, h, len(payload))
	dst = append(dst, payload...)
	return AppendTail(dst, Checksum(payload))
}

// AppendHead appends what stands before a record's payload, whose length is
// given.
func AppendHead(dst []byte, h Head, payload int) []byte {
	return binary.BigEndian.AppendUint32(appendHead(dst, h), uint32(payload))
}

// AppendTail appends what stands behind a record's payload, whose checksum is
// given.
func AppendTail(dst []byte, checksum uint16) []byte {
	return append(dst, byte(checksum>>8), byte(checksum), closing)
}

// ParseTail takes the TailLen bytes behind a payload apart. It is false where
// the closing byte is wrong.
func ParseTail(b []byte) (checksum uint16, ok bool) {
	return binary.BigEndian.Uint16(b), b[TailLen-1] == closing
}

// Closes reports whether records close with b, and beacons begin and close with
// it.
func Closes(b byte) bool { return b == closing }

func appendHead(dst []byte, h Head) []byte {
	dst = append(dst, byte(len(h.Key)))
	dst = append(dst, h.Key...)
	dst = binary.BigEndian.AppendUint64(dst, h.Shard)
	dst = binary.BigEndian.AppendUint64(dst, h.Sequence)
	return binary.BigEndian.AppendUint64(dst, uint64(h.Time))
}

// read fills the record from its head, whose key is k bytes long and stands
// behind one byte, and says how long its payload is.
func (r *Record) read(head []byte, k int) (payload int64) {
	fixed := head[1+k : 1+k+fixedLen]
	r.Key = head[1 : 1+k : 1+k]
	r.Shard = binary.BigEndian.Uint64(fixed)
	r.Sequence = binary.BigEndian.Uint64(fixed[8:])
	r.Time = int64(binary.BigEndian.Uint64(fixed[16:]))
	return int64(binary.BigEndian.Uint32(fixed[24:]))
}
