// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
)

// small is a record of 46 bytes: key at 1, payload's length at 31, payload at
// 35, checksum at 43, closing byte at 45.
var small = AppendRecord(nil, Head{Key: "orders", Sequence: 7, Time: born}, []byte(`{"id":7}`))

func TestTruncated(t *testing.T) {
	p := Parser{Interval: 1024}
	for n := range small {
		var rec Record
		got, err := p.Next(small[:n], HeaderSize, &rec)
		short, ok := errors.AsType[*ShortError](err)
		if !ok || got != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%d of %d bytes: got %d bytes and error %v, want a *ShortError", n, len(small), got, err)
		}
		if short.Need <= n || short.Need > len(small) {
			t.Errorf("%d of %d bytes: %v", n, len(small), short)
		}
	}
}

// TestTruncatedCut asks for more until a record cut by beacons is whole, and
// counts how often.
func TestTruncatedCut(t *testing.T) {
	file := sample(t, "with-beacons.ss")
	p := Parser{Interval: 1024}
	for off := int64(HeaderSize); off < int64(len(file)); {
		rest := file[off:]
		var rec Record
		whole, err := p.Next(rest, off, &rec)
		if err != nil {
			t.Fatal(err)
		}
		for n := range whole {
			_, err := p.Next(rest[:n], off, &rec)
			short, ok := errors.AsType[*ShortError](err)
			if !ok || short.Need <= n || short.Need > whole {
				t.Fatalf("record at %d, %d of %d bytes: %v", off, n, whole, err)
			}
		}
		off += int64(whole)
	}
}

func TestNeedComesNear(t *testing.T) {
	const interval = 4096
	record := AppendRecord(nil, Head{Key: "k", Sequence: 1}, make([]byte, 1<<20))
	markers := make([]Marker, Slots(interval))
	for i := range markers {
		markers[i].Key = strings.Repeat("k", MaxKey)
	}
	file := Header{Interval: interval}.Append(nil)
	for rest := record; len(rest) > 0; {
		n := min(len(rest), interval-len(file)%interval)
		file, rest = append(file, rest[:n]...), rest[n:]
		if len(file)%interval == 0 {
			file = AppendBeacon(file, Beacon{Remaining: uint32(len(rest)), Markers: markers})
		}
	}
	p := Parser{Interval: interval}
	var rec Record
	need, calls := 1, 0
	for {
		calls++
		n, err := p.Next(file[HeaderSize:HeaderSize+need], HeaderSize, &rec)
		short, ok := errors.AsType[*ShortError](err)
		if !ok {
			if err != nil || n != len(file)-HeaderSize || len(rec.Payload) != 1<<20 {
				t.Fatalf("got %d bytes and error %v, want %d", n, err, len(file)-HeaderSize)
			}
			break
		}
		need = short.Need
	}
	if calls > 200 {
		t.Errorf("whole after %d calls", calls)
	}
}

func TestDamage(t *testing.T) {
	with := func(at int, b ...byte) []byte {
		out := append([]byte(nil), small...)
		copy(out[at:], b)
		return append(out, small...)
	}
	long := binary.BigEndian.AppendUint32(nil, uint32(MaxPayload)+1)
	for _, test := range []struct {
		name     string
		in       []byte
		reason   string
		sequence uint64
		resume   int
	}{
		{"no key", with(0, 0), "a key of 0 bytes", 0, 0},
		{"key too long", with(0, MaxKey+1), "a key of 250 bytes", 0, 0},
		{"key with a blank", with(3, ' '), `the key "or ers"`, 0, 0},
		{"key with a blank, no more", with(3, ' ')[:5], `the key "or e"`, 0, 0},
		{"absurd length", with(31, 0xff, 0xff, 0xff, 0xff), "a payload of 4294967295 bytes", 7, 0},
		{"length over the limit", with(31, long...), "at most 90177548 are possible", 7, 0},
		{"length over the limit, no more", with(31, long...)[:35], "at most 90177548 are possible", 7, 0},
		{"shorter length", with(34, 7), "it closes with bb", 7, 0},
		{"longer length", with(34, 9), "it closes with 06", 7, 0},
		{"closing byte", with(45, 0), "it closes with 00", 7, 0},
		{"flipped bit in the payload", with(35, '{'^1), "the record says 8fbb", 7, 46},
		{"flipped bit in the checksum", with(43, 0x8e), "has the checksum 8fbb, the record says 8ebb", 7, 46},
		{"flipped bit, nothing behind", with(35, '{'^1)[:46], "the record says 8fbb", 7, 46},
		{"flipped bit, no record behind", append(with(35, '{'^1)[:46], 0xff), "the record says 8fbb", 7, 0},
		{"flipped bit, bad key behind", append(with(35, '{'^1)[:46], 2, 'a', 0), "the record says 8fbb", 7, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := Parser{Interval: 1024}
			var rec Record
			n, err := p.Next(test.in, 500, &rec)
			bad, ok := errors.AsType[*DamageError](err)
			if !ok || n != 0 {
				t.Fatalf("got %d bytes and error %v, want a *DamageError", n, err)
			}
			if bad.Offset != 500 || bad.Sequence != test.sequence || bad.Resume != test.resume || !strings.Contains(bad.Error(), test.reason) {
				t.Errorf("got %+v, want offset 500, sequence %d, resume %d and %q", *bad, test.sequence, test.resume, test.reason)
			}
		})
	}
}

// TestDamageAroundBeacons has a record of 1033 bytes from 128 on, cut at 1024.
func TestDamageAroundBeacons(t *testing.T) {
	record := AppendRecord(nil, Head{Key: "k", Sequence: 1, Time: born}, []byte(strings.Repeat("A", 1000)))
	build := func(b Beacon) []byte {
		return append(AppendBeacon(append([]byte(nil), record[:896]...), b), record[896:]...)
	}
	marked := Beacon{Remaining: 137, Markers: []Marker{{Head{Key: "k", Sequence: 1, Time: born}, 0x5d9b}}}
	sound := build(marked)
	with := func(at int, c byte) []byte {
		out := append([]byte(nil), sound...)
		out[at] = c
		return out
	}
	two := Beacon{Remaining: 137, Markers: []Marker{marked.Markers[0], marked.Markers[0]}}
	for _, test := range []struct {
		name   string
		in     []byte
		reason string // "" = reads
	}{
		{"sound", sound, ""},
		{"no markers", build(Beacon{Remaining: 137}), ""},
		{"bad key in a marker", with(896+7, ' '), ""},
		{"other number", build(Beacon{Remaining: 138}), "137 stand behind the beacon at offset 1024, which says 138"},
		{"number before the record is whole", build(Beacon{Remaining: 138})[:910], "which says 138"},
		{"begins wrong", with(896, 0), "begins with 00, not with 0d at offset 1024"},
		{"begins wrong, no more", with(896, 0)[:897], "begins with 00"},
		{"other count", with(896+5, 0), "closes with 01"},
		{"marker without a key", with(896+6, 0), "a marker with a key of 0 bytes"},
		{"closes wrong", with(896+34, 0), "closes with 00"},
		{"more markers than fit", build(two), "2 markers, at most 1 fit"},
		{"changed length of the payload", with(28, 4), "which says 137"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := Parser{Interval: 1024}
			var rec Record
			n, err := p.Next(test.in, HeaderSize, &rec)
			if test.reason == "" {
				if err != nil || n != len(test.in) {
					t.Fatalf("got %d bytes and error %v, want %d", n, err, len(test.in))
				}
				return
			}
			bad, ok := errors.AsType[*DamageError](err)
			if !ok || bad.Offset != HeaderSize || bad.Sequence != 1 || bad.Resume != 0 || !strings.Contains(bad.Reason, test.reason) {
				t.Fatalf("got %d bytes and error %v, want damage at 128: %s", n, err, test.reason)
			}
		})
	}
}

func TestBoundaryBeacons(t *testing.T) {
	empty := AppendBeacon(nil, Beacon{})
	for _, test := range []struct {
		name   string
		in     []byte
		want   int
		reason string
	}{
		{"record behind", append(AppendBeacon(nil, Beacon{}), small...), 53, ""},
		{"cut record announced", append(AppendBeacon(nil, Beacon{Remaining: 5}), small...), 0, "5 bytes of a record follow where none was cut"},
		{"none", small, 0, "no beacon: it begins with 06"},
		{"damaged record behind", append(AppendBeacon(nil, Beacon{}), 0), 0, "a key of 0 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := Parser{Interval: 1024}
			var rec Record
			n, err := p.Next(test.in, 2048, &rec)
			bad, _ := errors.AsType[*DamageError](err)
			if n != test.want || bad != nil && !strings.Contains(bad.Reason, test.reason) || (test.reason == "") != (err == nil) {
				t.Errorf("got %d bytes and error %v, want %d and %q", n, err, test.want, test.reason)
			}
		})
	}
	for n := range empty {
		p := Parser{Interval: 1024}
		if _, err := p.Next(empty[:n], 2048, new(Record)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes of a beacon: %v", n, err)
		}
	}
}

func TestBoundary(t *testing.T) {
	p := Parser{Interval: 1024}
	for _, test := range []struct {
		name      string
		remaining uint32
		want      int64
		ok        bool
	}{
		{"no record cut", 0, 2055, true},
		{"a record ends", 100, 2155, true},
		{"a record ends at the next place", 1017, 3072, true},
		{"a record goes on behind it", 1018, 3073, false},
	} {
		got, ok, err := p.Boundary(AppendBeacon(nil, Beacon{Remaining: test.remaining}), 2048)
		if got != test.want || ok != test.ok || err != nil {
			t.Errorf("%s: got %d, %t and error %v, want %d, %t", test.name, got, ok, err, test.want, test.ok)
		}
	}
	if _, _, err := p.Boundary(small, 2048); err == nil || !strings.Contains(err.Error(), "damaged at offset 2048: no beacon") {
		t.Errorf("no beacon: got error %v", err)
	}
	for off, want := range map[int64]int64{0: 1024, 128: 1024, 1024: 1024, 1025: 2048, 2048: 2048} {
		if got := NextPlace(off, 1024); got != want {
			t.Errorf("place behind %d: got %d, want %d", off, got, want)
		}
	}
}

func TestEndRest(t *testing.T) {
	mark := AppendEnd(nil, born)
	for n := range len(mark) + 1 {
		if got, want := EndRest(mark[n:]), n > 0 && n < len(mark); got != want {
			t.Errorf("without its first %d bytes: got %t, want %t", n, got, want)
		}
	}
	for _, no := range [][]byte{small[10:], mark[1:55], append(mark[1:len(mark):len(mark)], 0)} {
		if EndRest(no) {
			t.Errorf("%x is taken for what is left of a mark", no)
		}
	}
}

func TestBeaconRest(t *testing.T) {
	b := AppendBeacon(nil, Beacon{Markers: []Marker{{Head: Head{Key: "orders", Sequence: 7}}, {Head: Head{Key: "k", Time: born}}}})
	for n := beaconMin; n <= len(b); n++ {
		want := 0 // whole markers of 33 and 28 bytes
		if n <= beaconHead+33 {
			want = 1
		}
		if got, ok := BeaconRest(b[n:]); got != want || !ok {
			t.Errorf("without its first %d bytes: got %d markers, %t, want %d", n, got, ok, want)
		}
	}
	text := []byte(strings.Repeat("text", 200) + "\r")
	for _, no := range [][]byte{b[7 : len(b)-1], append(make([]byte, 300), b[10:]...), make([]byte, 40), text} {
		if n, ok := BeaconRest(no); ok {
			t.Errorf("%x is taken for what is left of a beacon, with %d markers", no, n)
		}
	}
}
