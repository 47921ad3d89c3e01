// SPDX-License-Identifier: Apache-2.0

// Package format takes the bytes of SeaStreamer stream files (.ss) apart and
// puts them together. It does no input or output.
//
// A file is a header of 128 bytes and records behind it. At every multiple of
// the header's beacon interval stands a beacon, within a record if one is being
// written there: the record's bytes go on behind it. All integers are big
// endian. The end mark is a record of the key EndKey.
//
// # Caveats
//
// The checksum of a record covers its payload alone. Key, sequence, time and
// length are guarded by nothing but their being possible, the closing byte and
// the beacons.
package format

import (
	"github.com/longshore-go/longshore/plugins/internal/envelope"
	"github.com/longshore-go/longshore/plugins/internal/streamkey"
)

const (
	// MaxKey is how long a key may be.
	MaxKey = streamkey.Max
	// DefaultInterval is the beacon interval of files that choose none.
	DefaultInterval = 1 << 20
	// RecordOverhead is what a record takes besides its key and its payload.
	RecordOverhead = fixedLen + 1 + TailLen
	// TailLen is what of it follows the payload: checksum and closing byte.
	TailLen = 2 + 1
	// MaxRecord is the length of the longest record, beacons not counted.
	MaxRecord = RecordOverhead + MaxKey + MaxPayload
	// MaxPayload is the longest payload of a record: the envelope of the largest
	// message (64 MiB) with the most headers. A record that claims a longer one is
	// damaged.
	MaxPayload = len("rs1:") + (maxMessage+8*envelope.MaxHeaders+4+2)/3*4

	maxMessage = 64 << 20
	// fixedLen is what follows the key: shard, sequence, time and the payload's
	// length.
	fixedLen = 8 + 8 + 8 + 4
	// closing ends headers, records and beacons, and begins beacons.
	closing = 0x0d
)

// The records that are no messages.
const (
	// PrimeKey is the key of the record that other writers put first into every
	// file.
	PrimeKey = "ruststream-internal"
	// EndKey is the key of the record that ends a stream. Its sequence is 0.
	EndKey = "SEA_STREAMER_INTERNAL"
	// EndPayload is the payload of the record that ends a stream.
	EndPayload = "EOS"
)

// Head is what a record says besides its payload.
type Head struct {
	Key      string
	Shard    uint64
	Sequence uint64
	Time     int64 // ms since the epoch
}

// ValidKey reports whether k can be a stream key: 1 to MaxKey letters, digits,
// dots, underscores and hyphens.
func ValidKey[T string | []byte](k T) bool {
	return streamkey.Valid(k)
}
