// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
	"github.com/longshore-go/longshore/plugins/file/internal/index"
)

func TestTailOfSamples(t *testing.T) {
	for _, test := range []struct {
		file     string
		end      int64
		mark     int64
		complete bool
		keys     map[string]uint64
	}{
		{"two-messages.ss", 270, -1, true, map[string]uint64{format.PrimeKey: 1, "orders": 2}},
		{"with-headers.ss", 553, -1, true, map[string]uint64{format.PrimeKey: 1, "orders": 4}},
		{"retries-and-dead-letter.ss", 661, -1, true, map[string]uint64{format.PrimeKey: 1, "orders": 3, "orders.dead": 1}},
		{"eos-then-append.ss", 325, -1, true, map[string]uint64{format.PrimeKey: 1, "orders": 2}},
		{"with-beacons.ss", 4998, -1, false, map[string]uint64{"orders": 17}},
	} {
		t.Run(test.file, func(t *testing.T) {
			h, file := sample(t, test.file)
			tail := findTail(t, h, file)
			if tail.End != test.end || tail.Mark != test.mark || tail.Torn != 0 || tail.Damage != nil || tail.Complete != test.complete {
				t.Errorf("got %+v, want end %d, mark %d, complete %t", *tail, test.end, test.mark, test.complete)
			}
			keys := map[string]uint64{}
			for k, s := range tail.Keys {
				keys[k] = s.Sequence
			}
			if diff := cmp.Diff(keys, test.keys); diff != "" {
				t.Errorf("got -, want +:\n%s", diff)
			}
		})
	}
	h, file := sample(t, "with-beacons.ss")
	all, err := index.ReadAll(bytes.NewReader(file), int64(len(file)), h, format.HeaderSize, nil)
	if err != nil || !all.Complete || all.Keys["other"].Sequence != 1 || all.Keys["orders"].Sequence != 17 {
		t.Errorf("all: got %+v and error %v", all, err)
	}
}

func TestTailOfSmallFiles(t *testing.T) {
	empty := formattest.New(1024)
	if tail := findTail(t, empty.Header, empty.Bytes); tail.End != 128 || !tail.Complete || len(tail.Keys) != 0 {
		t.Errorf("a header alone: got %+v", *tail)
	}
	b := several(1024, 1, 5, "orders")
	tail := findTail(t, b.Header, b.Bytes)
	if diff := cmp.Diff(tail.Keys, states(b)); diff != "" || tail.End != int64(len(b.Bytes)) {
		t.Errorf("end %d, got -, want +:\n%s", tail.End, diff)
	}
}

// TestTornAnywhere cuts a file at every byte behind its first records, with
// payloads that put record ends around the places of beacons.
func TestTornAnywhere(t *testing.T) {
	for payload := 440; payload < 452; payload++ {
		b := several(1024, 3, payload, "orders", "other")
		ends := map[int64]bool{format.HeaderSize: true}
		for _, r := range b.Records {
			ends[r.End] = true
		}
		want, last := int64(format.HeaderSize), 0
		for n := int64(format.HeaderSize); n <= int64(len(b.Bytes)); n++ {
			if ends[n] {
				want, last = n, last+1
			}
			tail := findTail(t, b.Header, b.Bytes[:n])
			if tail.Damage != nil || tail.Mark != -1 || tail.End+tail.Torn != n {
				t.Fatalf("payloads of %d, %d of %d bytes: got %+v", payload, n, len(b.Bytes), *tail)
			}
			if tail.End != want && (tail.End < want || want%1024 != 0 || tail.Torn != 0) {
				t.Fatalf("payloads of %d, %d of %d bytes: the end is %d, want %d", payload, n, len(b.Bytes), tail.End, want)
			}
			got := withoutChecksums(tail.Keys)
			for k, s := range withoutChecksums(states(&formattest.Builder{Records: b.Records[:last-1]})) {
				if known, ok := got[k]; ok && known != s || !ok && tail.Complete {
					t.Fatalf("payloads of %d, %d bytes, key %s: got %+v, want %+v", payload, n, k, known, s)
				}
			}
		}
	}
}

func TestTornTails(t *testing.T) {
	b := several(1024, 4, 100, "orders")
	sound := len(b.Bytes)
	last := b.Records[len(b.Records)-1]
	record := b.Bytes[last.At:last.End]
	longer := format.AppendRecord(nil, format.Head{Key: "orders"}, make([]byte, 1000))
	zeros := make([]byte, 5000)
	for _, test := range []struct {
		name   string
		behind []byte
		damage string // "" = torn
	}{
		{"one zero", zeros[:1], ""},
		{"zeros over beacons", zeros, ""},
		{"beginning of a record", record[:60], ""},
		{"beginning of a record and zeros", append(bytes.Clone(record[:60]), zeros...), ""},
		{"beginning of a record and zeros up to its length", append(bytes.Clone(record[:60]), zeros[:len(record)-60]...), ""},
		{"rest of an end mark", format.AppendEnd(nil, 5)[20:], ""},
		{"closing byte", []byte{0x0d}, ""},
		{"less than a record", bytes.Repeat([]byte{0xff}, 31), ""},
		{"as much as a record", bytes.Repeat([]byte{0xff}, 32), "a key of 255 bytes"},
		{"a long text", bytes.Repeat([]byte("lorem ipsum "), 200), `the key "orem ipsum`},
		{"beginning and a whole record", append(bytes.Clone(record[:60]), record...), "closes with 78"},
		{"beginning of a longer record and a whole record", append(bytes.Clone(longer[:60]), record...), "a whole one stands behind it at offset"},
		{"beginning of a longer record, a whole record and zeros", append(append(bytes.Clone(longer[:60]), record...), zeros[:10]...), "a whole one"},
		{"zeros and a whole record", append(bytes.Clone(zeros[:60]), record...), "a key of 0 bytes"},
		{"absurd length", append(bytes.Clone(record[:31]), 0xff, 0xff, 0xff, 0xff, 0, 0), "a payload of 4294967295"},
		{"wrong closing byte", append(bytes.Clone(record[:len(record)-1]), 7), "closes with 07"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := append(bytes.Clone(b.Bytes), test.behind...)
			tail := findTail(t, b.Header, file)
			if tail.End != int64(sound) {
				t.Errorf("the end is %d, want %d", tail.End, sound)
			}
			bad, err := index.Torn(bytes.NewReader(file), int64(len(file)), b.Header, int64(sound))
			if err != nil || (bad == nil) != (tail.Damage == nil) {
				t.Errorf("judged alone: %v and error %v", bad, err)
			}
			if test.damage == "" {
				if tail.Damage != nil || tail.Torn != int64(len(test.behind)) {
					t.Errorf("got %d bytes and damage %v, want %d bytes torn", tail.Torn, tail.Damage, len(test.behind))
				}
				return
			}
			if tail.Damage == nil || tail.Torn != 0 || tail.Damage.Offset != int64(sound) || !strings.Contains(tail.Damage.Error(), test.damage) {
				t.Errorf("got %d bytes torn and damage %v, want %s", tail.Torn, tail.Damage, test.damage)
			}
		})
	}
}

// TestTornLargeRecord has a torn record whose payload holds whole records: a
// beacon that says how long it is proves that they are its payload.
func TestTornLargeRecord(t *testing.T) {
	b := several(1024, 1, 10, "orders")
	end := len(b.Bytes)
	inner := several(1024, 200, 10, "inner")
	b.Put(format.Head{Key: "orders", Sequence: 2}, inner.Bytes)
	for _, test := range []struct {
		n    int
		torn bool
	}{{end + 40, true}, {end + 500, false}, {1100, true}, {5000, true}, {len(b.Bytes) - 1, true}} {
		tail := findTail(t, b.Header, b.Bytes[:test.n])
		if (tail.Damage == nil) != test.torn || tail.End != int64(end) {
			t.Errorf("%d bytes: got end %d and damage %v, want end %d, torn %t", test.n, tail.End, tail.Damage, end, test.torn)
		}
		if tail.Keys["orders"].Sequence != 1 {
			t.Errorf("%d bytes: the torn record counts: %v", test.n, tail.Keys)
		}
	}
}

func TestDamageWithinTheLastInterval(t *testing.T) {
	b := several(1024, 30, 100, "orders")
	lastPlace := len(b.Bytes) / 1024 * 1024
	var inner formattest.Placed // whole, behind the last beacon, not the last
	for _, r := range b.Records[:len(b.Records)-1] {
		if r.At > int64(lastPlace) {
			inner = r
			break
		}
	}
	flip := func(at int64) []byte {
		file := bytes.Clone(b.Bytes)
		file[at] ^= 0x80
		return file
	}
	tail := findTail(t, b.Header, flip(inner.At+60))
	if tail.Damage != nil || tail.End != int64(len(b.Bytes)) || tail.Keys["orders"].Sequence != 30 {
		t.Errorf("a damaged payload: got %+v", *tail)
	}
	tail = findTail(t, b.Header, flip(inner.End-1))
	if tail.Damage == nil || tail.End != inner.At || tail.Torn != 0 {
		t.Errorf("a damaged closing byte: got %+v, want damage at %d", *tail, inner.At)
	}
	tail = findTail(t, b.Header, flip(int64(lastPlace)))
	if tail.Damage == nil {
		t.Errorf("a damaged beacon: got %+v", *tail)
	}
	tail = findTail(t, b.Header, flip(int64(lastPlace)-1024))
	if tail.Damage != nil || tail.End != int64(len(b.Bytes)) {
		t.Errorf("damage before the last beacon: got %+v", *tail)
	}
	all, err := index.ReadAll(bytes.NewReader(flip(500)), int64(len(b.Bytes)), b.Header, format.HeaderSize, nil)
	if err != nil || all.Damage != nil || all.End != int64(len(b.Bytes)) || all.Keys["orders"].Sequence != 30 {
		t.Errorf("all, with damage in the middle: got %+v and error %v", all, err)
	}
}

func TestEndMarks(t *testing.T) {
	for payload := 780; payload < 850; payload++ {
		b := formattest.New(1024)
		b.Add("orders", strings.Repeat("x", payload))
		before := int64(len(b.Bytes))
		mark := b.End()
		behind := b.Add("orders", "behind")
		for n := mark.End; n <= int64(len(b.Bytes)); n++ {
			tail := findTail(t, b.Header, b.Bytes[:n])
			want := index.Tail{End: mark.At, Mark: mark.At, Torn: n - mark.End, Read: tail.Read, Complete: true}
			switch {
			case n >= behind.End:
				want.End, want.Mark, want.Torn = behind.End, -1, n-behind.End
				if n == int64(len(b.Bytes)) {
					want.End, want.Torn = n, 0
				}
			case mark.End%1024 == 0 && n >= behind.At:
				want.Torn = n - behind.At
			}
			if _, ok := tail.Keys[format.EndKey]; ok {
				t.Errorf("the mark is a key")
			}
			tail.Keys = nil
			want.Complete = tail.Complete
			if diff := cmp.Diff(*tail, want); diff != "" || mark.At != before {
				t.Fatalf("payload of %d, mark from %d to %d, %d bytes: got -, want +:\n%s", payload, mark.At, mark.End, n, diff)
			}
		}
	}
}

func TestComplete(t *testing.T) {
	many := make([]string, 8)
	for i := range many {
		many[i] = fmt.Sprintf("key-%d", i)
	}
	// At 4096 a beacon has room for seven keys.
	for _, test := range []struct {
		name     string
		keys     []string
		reopened bool
		want     bool
	}{
		{"few keys", many[:5], false, true},
		{"as many as fit", many[:6], false, false},
		{"more than fit", many, false, false},
		{"few keys, opened again", many[:5], true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := several(4096, 20, 200, test.keys...)
			if test.reopened {
				b.Reopen()
				for i := range 100 {
					b.Put(format.Head{Key: "key-0", Sequence: uint64(21 + i), Time: formattest.Born}, make([]byte, 200))
				}
			}
			tail := findTail(t, b.Header, b.Bytes)
			if tail.Complete != test.want {
				t.Errorf("complete: got %t, want %t", tail.Complete, test.want)
			}
			want := withoutChecksums(states(b))
			if tail.Complete {
				if diff := cmp.Diff(withoutChecksums(tail.Keys), want); diff != "" {
					t.Errorf("got -, want +:\n%s", diff)
				}
			}
			var seen int
			all, err := index.ReadAll(bytes.NewReader(b.Bytes), int64(len(b.Bytes)), b.Header, format.HeaderSize,
				func(int64, *format.Record) { seen++ })
			if err != nil || seen != len(b.Records) {
				t.Fatalf("%d records and error %v, want %d", seen, err, len(b.Records))
			}
			if diff := cmp.Diff(all.Keys, states(b)); diff != "" {
				t.Errorf("all: got -, want +:\n%s", diff)
			}
		})
	}
}

func TestReadAllFromABoundary(t *testing.T) {
	b := several(1024, 10, 100, "orders", "other")
	from := b.Records[12].At
	var got []int64
	tail, err := index.ReadAll(bytes.NewReader(b.Bytes), int64(len(b.Bytes)), b.Header, from,
		func(at int64, _ *format.Record) { got = append(got, at) })
	var want []int64
	for _, r := range b.Records[12:] {
		want = append(want, r.At)
	}
	if diff := cmp.Diff(got, want); diff != "" || err != nil || tail.Complete {
		t.Errorf("complete %t, error %v, got -, want +:\n%s", tail.Complete, err, diff)
	}
}

func TestFileThatShrank(t *testing.T) {
	b := several(1024, 10, 100, "orders")
	_, err := index.FindTail(bytes.NewReader(b.Bytes[:500]), int64(len(b.Bytes)), b.Header)
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "at offset") {
		t.Errorf("got error %v", err)
	}
}
