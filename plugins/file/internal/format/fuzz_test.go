// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzHeader(f *testing.F) {
	f.Add(Header{Name: "orders.ss", Created: born, Interval: 1 << 20}.Append(nil))
	f.Add(sample(f, "with-beacons.ss")[:HeaderSize])
	f.Add([]byte("Ss"))
	f.Fuzz(func(t *testing.T, in []byte) {
		h, err := ParseHeader(in)
		if err != nil {
			if _, ok := errors.AsType[*HeaderError](err); !ok {
				t.Fatalf("error %v", err)
			}
			return
		}
		again, err := ParseHeader(h.Append(nil))
		if diff := cmp.Diff(again, h); diff != "" || err != nil {
			t.Errorf("written and read again: error %v, got -, want +:\n%s", err, diff)
		}
	})
}

func FuzzBeacon(f *testing.F) {
	f.Add(AppendBeacon(nil, Beacon{}))
	f.Add(AppendBeacon(nil, Beacon{Remaining: 137, Markers: []Marker{{Head{Key: "k", Sequence: 1, Time: born}, 0x5d9b}}}))
	f.Add(sample(f, "with-beacons.ss")[1024:1100])
	f.Fuzz(func(t *testing.T, in []byte) {
		b, n, err := ParseBeacon(in)
		if short, ok := errors.AsType[*ShortError](err); ok {
			if short.Need <= len(in) || short.Need > beaconMin+maxMarkers*slotLen {
				t.Errorf("%d bytes needed, %d given", short.Need, len(in))
			}
			return
		}
		if err != nil {
			if _, ok := errors.AsType[*BeaconError](err); !ok {
				t.Fatalf("error %v", err)
			}
			return
		}
		if again := AppendBeacon(nil, b); !bytes.Equal(again, in[:n]) || b.Len() != n {
			t.Errorf("written again: got %x, want %x", again, in[:n])
		}
	})
}

// FuzzParser looks at the bytes as records that begin at an offset.
func FuzzParser(f *testing.F) {
	f.Add(small, int64(HeaderSize), byte(0))
	f.Add(sample(f, "with-beacons.ss")[HeaderSize:], int64(HeaderSize), byte(0))
	f.Add(sample(f, "with-beacons.ss")[1024:], int64(1024), byte(0))
	f.Add(sample(f, "eos-then-append.ss")[HeaderSize:], int64(1000), byte(3))
	f.Fuzz(func(t *testing.T, in []byte, off int64, units byte) {
		interval := (uint32(units%4) + 1) * IntervalUnit
		p := Parser{Interval: interval}
		for off = off & 0xffff_ffff; ; {
			var rec Record
			n, err := p.Next(in, off, &rec)
			if len(p.Spill) > len(in) || cap(p.Spill) > 2*len(in)+leastSpill {
				t.Fatalf("%d bytes made a spill of %d", len(in), cap(p.Spill))
			}
			if short, ok := errors.AsType[*ShortError](err); ok {
				if n != 0 || short.Need <= len(in) {
					t.Fatalf("%d bytes consumed, %d needed, %d given", n, short.Need, len(in))
				}
				return
			}
			if bad, ok := errors.AsType[*DamageError](err); ok {
				if n != 0 || bad.Offset < off || bad.Offset >= off+int64(len(in)) || bad.Resume > len(in) {
					t.Fatalf("%d bytes consumed, damage %+v, %d given", n, bad, len(in))
				}
				if n = bad.Resume; n == 0 {
					return
				}
			} else if err != nil {
				t.Fatalf("error %v", err)
			} else {
				checkRecord(t, &rec, in[:n])
			}
			in, off = in[n:], off+int64(n)
			p.Spill = nil
		}
	})
}

// checkRecord writes a record again: without beacons within it has the bytes it
// was read from.
func checkRecord(t *testing.T, rec *Record, from []byte) {
	if !ValidKey(rec.Key) || Checksum(rec.Payload) != rec.Checksum {
		t.Fatalf("read as sound: %+v", rec)
	}
	again := AppendRecord(nil, Head{Key: string(rec.Key), Shard: rec.Shard, Sequence: rec.Sequence, Time: rec.Time}, rec.Payload)
	if len(again) > len(from) || len(again) != RecordLen(rec.Key, len(rec.Payload)) {
		t.Fatalf("written again it has %d bytes, %d were read", len(again), len(from))
	}
	if !bytes.HasPrefix(again, []byte{from[0]}) && from[0] != closing {
		t.Fatalf("it began with %02x, written again with %02x", from[0], again[0])
	}
	if len(again) == len(from) && !bytes.Equal(again, from) {
		t.Fatalf("written again: got %x, want %x", again, from)
	}
}
