// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func same(t testing.TB, got, want []byte) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			from := max(0, i-16)
			t.Fatalf("they differ at offset %d:\ngot  %x\nwant %x", i, got[from:min(len(got), i+48)], want[from:min(len(want), i+48)])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("got %d bytes, want %d", len(got), len(want))
	}
}

// The vectors of the format, end to end.
func TestAFileIsTheVectorsByteForByte(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	now := time.UnixMilli(born)
	at := func(ms int64) { now = time.UnixMilli(born + ms) }
	w := open(t, path, Options{EndMark: true, Now: func() time.Time { return now }})
	at(1)
	put(t, w, plain("orders", `{"id":7}`)...)
	at(1001)
	put(t, w, Entry{Key: "orders", Payload: []byte(`{"id":7}`), Headers: core.Headers{
		{Name: "stream-sequence", Value: []byte("1")}, {Name: "x-ruststream-retry-count", Value: []byte("1")},
	}})
	at(2)
	closed(t, w)
	want := unhex(t, "537301 09 6f72646572732e7373 0000018bcfe56800 00100000"+strings.Repeat("00", 102)+"0d")
	want = append(want, unhex(t, `
		13 7275737473747265616d2d696e7465726e616c 0000000000000000 0000000000000001 0000018bcfe56800 00000001 31 cd4f 0d
		06 6f7264657273 0000000000000000 0000000000000001 0000018bcfe56801 00000008 7b226964223a377d 8fbb 0d
		06 6f7264657273 0000000000000000 0000000000000002 0000018bcfe56be9 00000054`)...)
	want = append(want, "rs1:AAAAL3N0cmVhbS1zZXF1ZW5jZTogMQp4LXJ1c3RzdHJlYW0tcmV0cnktY291bnQ6IDEKeyJpZCI6N30="...)
	want = append(want, unhex(t, `b28a 0d
		15 5345415f53545245414d45525f494e5445524e414c 0000000000000000 0000000000000000 0000018bcfe56802 00000003 454f53 ed7c 0d`)...)
	same(t, contents(t, path), want)
}

func TestABeaconCutsARecordByteForByte(t *testing.T) {
	b := block{off: format.HeaderSize, interval: 1024, slots: format.Slots(1024)}
	b.record(newTable(), "k", nil, bytes.Repeat([]byte("A"), 1000), 1000, false, born)
	if got := len(b.bytes); got != 1196-format.HeaderSize {
		t.Errorf("got %d bytes", got)
	}
	want := unhex(t, "0d 00000089 01 01 6b 0000000000000000 0000000000000001 0000018bcfe56800 5d9b 0d")
	same(t, b.bytes[1024-format.HeaderSize:][:len(want)], want)
}

// The blocks are what the shortest code for the format writes, wherever records
// end and beacons fall.
func TestBlocksAreWhatTheFormatSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := uint32(1024 * rapid.IntRange(1, 4).Draw(t, "interval"))
		want := formattest.New(interval)
		table := newTable()
		table.begin()
		b := block{off: format.HeaderSize, interval: interval, slots: format.Slots(interval)}
		got := want.Header.Append(nil)
		for i := range rapid.IntRange(1, 40).Draw(t, "records") {
			name := rapid.SampledFrom([]string{"a", "orders", "B-c", "zz.9", strings.Repeat("k", 249)}).Draw(t, "key")
			off := b.off + int64(len(b.bytes))
			size := rapid.OneOf(
				rapid.IntRange(0, 5000),
				rapid.Just(max(0, int(format.NextPlace(off+1, interval)-off)-format.RecordLen(name, 0))), // it ends at a beacon's place
			).Draw(t, "size")
			if rapid.IntRange(0, 3).Draw(t, "block") == 0 {
				got = append(got, b.bytes...)
				b.reset(int64(len(got)))
				table.begin()
			}
			before := len(b.bytes)
			most := b.most(table, name, format.RecordLen(name, size))
			payload := strings.Repeat("x", size)
			want.Add(name, payload)
			b.record(table, name, nil, []byte(payload), size, false, formattest.Born+int64(i)+1)
			if n := int64(len(b.bytes) - before); n > most {
				t.Fatalf("a record took %d bytes, at most %d were expected", n, most)
			}
		}
		if got = append(got, b.bytes...); !bytes.Equal(got, want.Bytes) {
			t.Fatalf("%d bytes, want %d, or they differ", len(got), len(want.Bytes))
		}
	})
}

// The samples that the reference wrote come out byte for byte when the same
// messages are written at the same times, in as many runs.
func TestTheSamplesComeOutByteForByte(t *testing.T) {
	for _, tt := range []struct {
		sample string
		reopen []int // before the record with this index
	}{
		{"two-messages.ss", nil},
		{"with-headers.ss", nil},
		{"retries-and-dead-letter.ss", nil},
		{"two-messages.ss", []int{2}},
		{"with-headers.ss", []int{2, 3, 4}},
		{"with-beacons.ss", []int{13, 14}},
		{"with-beacons.ss", []int{13}},
	} {
		t.Run(fmt.Sprint(tt.sample, tt.reopen), func(t *testing.T) {
			want := contents(t, filepath.Join("..", "..", "testdata", "samples", tt.sample))
			h, err := format.ParseHeader(want)
			if err != nil {
				t.Fatal(err)
			}
			var times []int64
			var entries []Entry
			p := format.Parser{Interval: h.Interval}
			for off := format.HeaderSize; off < len(want); {
				var r format.Record
				n, err := p.Next(want[off:], int64(off), &r)
				if err != nil {
					t.Fatal(err)
				}
				off += n
				times = append(times, r.Time)
				entries = append(entries, entryOf(t, string(r.Key), bytes.Clone(r.Payload)))
			}
			path := filepath.Join(folder(t), h.Name)
			c := &clock{ms: h.Created}
			o := Options{Now: c.now, Interval: h.Interval}
			if times[0] != h.Created && times[0] != h.Created+1 {
				t.Fatalf("primed at %d, created at %d", times[0], h.Created)
			}
			if times[0] == h.Created {
				o.Now = func() time.Time { now := c.now(); c.ms = times[0]; return now }
			}
			w := open(t, path, o)
			for i, e := range entries[1:] {
				for _, at := range tt.reopen {
					if at == i+1 {
						closed(t, w)
						w = open(t, path, o)
					}
				}
				c.ms = times[i+1]
				put(t, w, e)
			}
			closed(t, w)
			same(t, contents(t, path), want)
		})
	}
}

// Behind an end mark the reference appends in short files; this writer puts the
// next record in the mark's place, so that a replay finds it.
func TestTheSampleWithAnEndMarkLosesItWhenAppendedTo(t *testing.T) {
	sample := contents(t, filepath.Join("..", "..", "testdata", "samples", "eos-then-append.ss"))
	markLen := len(format.AppendEnd(nil, 0))
	last := format.RecordLen("orders", len("after eos"))
	path := filepath.Join(folder(t), "e.ss")
	writeFile(t, path, sample[:len(sample)-last]) // as it was with the mark at its end
	w := open(t, path, Options{})
	put(t, w, plain("orders", "after eos")...)
	closed(t, w)
	got := contents(t, path)
	if len(got) != len(sample)-markLen {
		t.Errorf("got %d bytes, want %d less than %d", len(got), markLen, len(sample))
	}
	list := messages(parse(t, path))
	if len(list) != 2 || list[1] != (parsed{Key: "orders", Sequence: 2, Payload: "after eos"}) {
		t.Errorf("got %v", list)
	}
}
