// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
)

// worn is a file with beacons between, within and right behind records.
func worn() *formattest.Builder {
	b := formattest.New(1024)
	b.Prime()
	b.Add("a", strings.Repeat("x", 200))
	b.Add("b", strings.Repeat("y", 700)) // cut in its payload
	b.Add("a", "")
	room := int(format.NextPlace(int64(len(b.Bytes)), 1024)) - len(b.Bytes)
	b.Add("b", strings.Repeat("z", room-format.RecordLen("b", 0))) // a beacon right behind it
	room = int(format.NextPlace(int64(len(b.Bytes)), 1024)) - len(b.Bytes)
	b.Add("a", strings.Repeat("z", room-format.RecordLen("a", 0)-10))
	b.Add("c", strings.Repeat("w", 1500)) // cut in its head, and again
	b.Add("a", "last")
	return b
}

// wholeOf says which records end at or before a length, and where the last one does.
func wholeOf(b *formattest.Builder, size int) (list []parsed, end int64) {
	end = format.HeaderSize
	for _, r := range b.Records {
		if r.End <= int64(size) {
			list = append(list, parsed{r.Key, r.Sequence, string(r.Payload)})
			end = r.End
		}
	}
	return list, end
}

func TestTornTailsAreCutOffAtEveryOffset(t *testing.T) {
	file := worn()
	dir := folder(t)
	path := filepath.Join(dir, "orders.ss")
	for size := format.HeaderSize; size <= len(file.Bytes); size++ {
		writeFile(t, path, file.Bytes[:size])
		want, end := wholeOf(file, size)
		if len(want) == 0 {
			want = []parsed{{format.PrimeKey, 1, "1"}}
		}
		last := map[string]uint64{}
		for _, r := range want {
			last[r.Key] = r.Sequence
		}
		w, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatalf("cut at %d: %v", size, err)
		}
		var more []Entry
		for _, key := range []string{"a", "b", "new"} {
			last[key]++
			want = append(want, parsed{key, last[key], "after"})
			more = append(more, plain(key, "after")...)
		}
		put(t, w, more...)
		kill(t, w)
		got, err := parseBytes(contents(t, path))
		if err != nil {
			t.Fatalf("cut at %d, last record ends at %d: %v", size, end, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("cut at %d (-want +got)\n%s", size, d)
		}
		if err := removed(path + sideSuffix); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTornTailsAreRefusedWithTheirOffset(t *testing.T) {
	file := worn()
	path := filepath.Join(folder(t), "orders.ss")
	for size := int(file.Records[0].End); size < len(file.Bytes); size += 7 {
		writeFile(t, path, file.Bytes[:size])
		_, end := wholeOf(file, size)
		w, err := Open(t.Context(), path, Options{RefuseTorn: true})
		var torn *TornError
		switch {
		case err == nil:
			closed(t, w) // it was cut between two things
			continue
		case !errors.As(err, &torn):
			t.Fatalf("cut at %d: %v", size, err)
		}
		if torn.Path != path || torn.Offset < end || torn.Offset+torn.Bytes != int64(size) {
			t.Errorf("cut at %d, last record ends at %d: got %+v", size, end, torn)
		}
		same(t, contents(t, path), file.Bytes[:size])
	}
}

func TestZerosAtTheEndAreCutOff(t *testing.T) {
	file := worn()
	path := filepath.Join(folder(t), "orders.ss")
	for _, zeros := range []int{1, 31, 500, 5000} {
		for _, size := range []int{len(file.Bytes), len(file.Bytes) - 5} { // a length that grew before the bytes came
			writeFile(t, path, append(bytes.Clone(file.Bytes[:size]), make([]byte, zeros)...))
			w := open(t, path, Options{})
			put(t, w, plain("a", "after")...)
			closed(t, w)
			want, _ := wholeOf(file, size)
			if got := parse(t, path); len(got) != len(want)+1 {
				t.Errorf("%d bytes and %d zeros: got %d records, want %d", size, zeros, len(got), len(want)+1)
			}
		}
	}
}

func TestADamagedEndIsNotWritten(t *testing.T) {
	file := formattest.New(1 << 20)
	file.Prime()
	file.Add("a", "first")
	middle := file.Add("a", strings.Repeat("x", 200))
	last := file.Add("a", "last")
	for name, change := range map[string]func(b []byte) []byte{
		"terminator of the last":      func(b []byte) []byte { b[last.End-1] = 0x7f; return b },
		"key of the last":             func(b []byte) []byte { b[last.At+1] = ' '; return b },
		"rubbish":                     func(b []byte) []byte { return append(b, strings.Repeat("\xee", 100)...) },
		"a whole record behind a cut": func(b []byte) []byte { return append(b[:middle.End-150], b[last.At:]...) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder(t), "orders.ss")
			b := change(bytes.Clone(file.Bytes))
			writeFile(t, path, b)
			_, err := Open(t.Context(), path, Options{})
			var damaged *DamagedError
			if !errors.As(err, &damaged) || damaged.Path != path || damaged.Err == nil {
				t.Fatalf("got %v", err)
			}
			same(t, contents(t, path), b)
		})
	}
}

// A record whose bounds are good is passed as a reader passes it, whatever its
// payload.
func TestAPayloadThatIsDamagedIsNotTheEnd(t *testing.T) {
	file := formattest.New(1 << 20)
	file.Prime()
	last := file.Add("a", "last")
	file.Bytes[last.End-5] ^= 1
	path := filepath.Join(folder(t), "orders.ss")
	writeFile(t, path, file.Bytes)
	w := open(t, path, Options{})
	put(t, w, plain("a", "next")...)
	closed(t, w)
	same(t, contents(t, path)[:len(file.Bytes)], file.Bytes)
}

// Damage hides records from who reads all heads, and no record stands behind the
// beacon that names the last one: its sequence is not given again.
func TestSequencesGoOnBehindDamage(t *testing.T) {
	file := formattest.New(1024)
	for range 10 {
		file.Add("a", "x")
	}
	cut := file.Add("a", strings.Repeat("y", 1000))
	file.Bytes[file.Records[4].At] = 0xff
	if len(file.Bytes) < 1024 || cut.End != int64(len(file.Bytes)) {
		t.Fatalf("%d bytes", len(file.Bytes))
	}
	path := filepath.Join(folder(t), "orders.ss")
	writeFile(t, path, file.Bytes)
	w := open(t, path, Options{})
	if got := put(t, w, plain("a", "next")...); got[0] != 12 {
		t.Errorf("got %d, want 12", got[0])
	}
}

func TestTheNextRecordTakesTheEndMarksPlace(t *testing.T) {
	for name, interval := range map[string]uint32{"no beacon": 1 << 20, "beacons": 1024} {
		for _, payload := range []string{"", strings.Repeat("x", 3000)} { // shorter and longer than a mark
			t.Run(name, func(t *testing.T) {
				path := filepath.Join(folder(t), "orders.ss")
				var want []parsed
				// The mark goes over all places relative to a beacon's.
				for i := range 90 {
					w := open(t, path, Options{EndMark: true, Interval: interval})
					put(t, w, plain("a", payload)...)
					want = append(want, parsed{"a", uint64(i + 1), payload})
					closed(t, w)
					list := parse(t, path)
					if list[len(list)-1].Key != format.EndKey {
						t.Fatalf("round %d: no mark", i)
					}
					if d := cmp.Diff(want, messages(list)); d != "" {
						t.Fatalf("round %d (-want +got)\n%s", i, d)
					}
					if len(list) != len(want)+2 {
						t.Fatalf("round %d: %d things in the file, want %d", i, len(list), len(want)+2)
					}
				}
			})
		}
	}
}

func TestAnEndMarkStaysUntilThereIsANextRecord(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{EndMark: true})
	put(t, w, plain("a", "1")...)
	closed(t, w)
	before := contents(t, path)
	for _, mark := range []bool{true, false} {
		closed(t, open(t, path, Options{EndMark: mark}))
		same(t, contents(t, path), before)
	}
	w = open(t, path, Options{})
	put(t, w, plain("a", "2")...)
	closed(t, w)
	if got := parse(t, path); len(got) != 3 || got[2].Payload != "2" {
		t.Errorf("got %v", got)
	}
	// The reference leaves the rest of a mark behind a shorter record.
	w = open(t, path, Options{EndMark: true})
	closed(t, w)
	b := contents(t, path)
	short := format.AppendRecord(nil, format.Head{Key: "a", Sequence: 3, Time: born}, nil)
	copy(b[len(b)-format.EndLen:], short)
	writeFile(t, path, b)
	w = open(t, path, Options{})
	if got := put(t, w, plain("a", "4")...); got[0] != 4 {
		t.Errorf("got %d", got)
	}
	closed(t, w)
	if got := parse(t, path); len(got) != 5 {
		t.Errorf("got %v", got)
	}
}

func TestNothingIsWrittenWithoutNeed(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	file := worn()
	writeFile(t, path, file.Bytes)
	closed(t, open(t, path, Options{}))
	same(t, contents(t, path), file.Bytes)
}
