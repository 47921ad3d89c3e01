// SPDX-License-Identifier: Apache-2.0

package format

import "bytes"

// EndLen is the length of an end mark.
const EndLen = RecordOverhead + len(EndKey) + len(EndPayload)

// AppendEnd appends an end mark.
func AppendEnd(dst []byte, time int64) []byte {
	return AppendRecord(dst, Head{Key: EndKey, Time: time}, []byte(EndPayload))
}

// IsEnd reports whether the record is an end mark.
func (r *Record) IsEnd() bool {
	return string(r.Key) == EndKey && string(r.Payload) == EndPayload
}

// EndRest reports whether b, the last bytes of a file, is what remains of an end
// mark without its beginning: the reference writes the next record over a mark
// and does not cut off what a shorter record leaves of it.
func EndRest(b []byte) bool {
	if len(b) == 0 || len(b) >= EndLen {
		return false
	}
	// The time may be any; what stands behind it is longer than it.
	const timeEnd = EndLen - TailLen - len(EndPayload) - 4
	mark := AppendEnd(make([]byte, 0, EndLen), 0)
	cut := EndLen - len(b)
	if cut < timeEnd {
		n := min(8, timeEnd-cut)
		copy(mark[timeEnd-n:timeEnd], b[timeEnd-n-cut:])
	}
	return bytes.Equal(mark[cut:], b)
}

// BeaconRest reports whether b may be what remains of a beacon without its
// beginning: part of a marker, whole markers, the closing byte. It counts the
// whole markers, all of shard 0: one is proof enough, none is hardly any.
func BeaconRest(b []byte) (markers int, ok bool) {
	if len(b) == 0 || b[len(b)-1] != closing {
		return 0, len(b) == 0
	}
	var shard [8]byte
	for part := range min(len(b), 1+MaxKey+markerRest) {
		at, n := part, 0
		for at < len(b)-1 {
			key := at + 1 + int(b[at])
			if key+markerRest >= len(b) || !ValidKey(b[at+1:key]) || !bytes.HasPrefix(b[key:], shard[:]) {
				break
			}
			at, n = key+markerRest, n+1
		}
		if at == len(b)-1 {
			return n, true
		}
	}
	return 0, false
}
