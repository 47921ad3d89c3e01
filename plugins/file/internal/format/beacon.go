// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/binary"
	"fmt"

	"github.com/longshore-go/longshore/plugins/internal/streamkey"
)

const (
	// beaconMin is the length of a beacon without markers; what comes before its
	// markers is all but the closing byte.
	beaconMin  = 1 + 4 + 1 + 1
	beaconHead = beaconMin - 1
	// markerRest is what follows a marker's key: shard, sequence, time, running
	// checksum.
	markerRest = 8 + 8 + 8 + 2
	// slotLen is what the format reckons for a marker.
	slotLen = 282
	// maxMarkers is what a count of one byte can say.
	maxMarkers = 255
)

// Marker names the latest record of a key, the one that the beacon cuts
// included, and the key's running checksum after it.
//
// A running checksum is informative: it begins anew with the last record's
// checksum when a file is opened again.
type Marker struct {
	Head
	Checksum uint16
}

// Beacon stands at a multiple of the beacon interval.
type Beacon struct {
	Remaining uint32 // bytes of the record it cuts that come behind it, further beacons not counted
	Markers   []Marker
}

// BeaconError says why bytes are no beacon.
type BeaconError struct{ Reason string }

// Error gives the reason.
func (e *BeaconError) Error() string { return "no beacon: " + e.Reason }

// Slots is how many markers a beacon holds at most in files with the interval
// given. Where there are more keys, they take turns.
func Slots(interval uint32) int {
	if interval < beaconMin {
		return 0
	}
	return min(maxMarkers, int((interval-beaconMin)/slotLen)) / 2
}

// Len is how many bytes the beacon takes.
func (b Beacon) Len() int {
	n := beaconMin
	for _, m := range b.Markers {
		n += 1 + len(m.Key) + markerRest
	}
	return n
}

// AppendBeacon appends a beacon. It has no more markers than Slots allows, each
// with a valid key.
func AppendBeacon(dst []byte, b Beacon) []byte {
	dst = append(dst, closing)
	dst = binary.BigEndian.AppendUint32(dst, b.Remaining)
	dst = append(dst, byte(len(b.Markers)))
	for _, m := range b.Markers {
		dst = appendHead(dst, m.Head)
		dst = binary.BigEndian.AppendUint16(dst, m.Checksum)
	}
	return append(dst, closing)
}

// ParseBeacon takes the beacon at the beginning of b apart and says how long it
// is. The error is a *ShortError or a *BeaconError.
func ParseBeacon(b []byte) (Beacon, int, error) {
	size, err := beaconLen(b)
	if err != nil {
		return Beacon{}, 0, err
	}
	out := Beacon{Remaining: remaining(b), Markers: make([]Marker, 0, b[beaconHead-1])}
	for at := beaconHead; at < size-1; {
		k := int(b[at])
		key, fixed := b[at+1:at+1+k], b[at+1+k:]
		if !streamkey.Legal(key) {
			return Beacon{}, 0, &BeaconError{Reason: fmt.Sprintf("a marker with the key %s", quote(key))}
		}
		out.Markers = append(out.Markers, Marker{
			Head: Head{
				Key:      string(key),
				Shard:    binary.BigEndian.Uint64(fixed),
				Sequence: binary.BigEndian.Uint64(fixed[8:]),
				Time:     int64(binary.BigEndian.Uint64(fixed[16:])),
			},
			Checksum: binary.BigEndian.Uint16(fixed[24:]),
		})
		at += 1 + k + markerRest
	}
	return out, size, nil
}

// remaining reads the number of a beacon whose length is known.
func remaining(b []byte) uint32 { return binary.BigEndian.Uint32(b[1:]) }

// beaconLen finds out how long the beacon at the beginning of b is, looking at
// its lengths and ends alone: a beacon with a damaged marker can be passed.
func beaconLen(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, &ShortError{Need: beaconMin}
	}
	if b[0] != closing {
		return 0, &BeaconError{Reason: fmt.Sprintf("it begins with %02x, not with %02x", b[0], closing)}
	}
	if len(b) < beaconMin {
		return 0, &ShortError{Need: beaconMin}
	}
	markers := int(b[beaconHead-1])
	at := beaconHead
	for i := range markers {
		if len(b) <= at {
			return 0, &ShortError{Need: at + (markers-i)*(1+1+markerRest) + 1}
		}
		k := int(b[at])
		if k == 0 || k > MaxKey {
			return 0, &BeaconError{Reason: fmt.Sprintf("a marker with a key of %d bytes", k)}
		}
		at += 1 + k + markerRest
	}
	if len(b) <= at {
		return 0, &ShortError{Need: at + 1}
	}
	if b[at] != closing {
		return 0, &BeaconError{Reason: fmt.Sprintf("it closes with %02x, not with %02x", b[at], closing)}
	}
	return at + 1, nil
}
