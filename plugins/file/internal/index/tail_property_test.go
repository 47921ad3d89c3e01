// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
	"github.com/longshore-go/longshore/plugins/file/internal/index"
)

// drawFile is a file of any shape: keys of all lengths, end marks, a writer that
// is opened again.
func drawFile(t *rapid.T) *formattest.Builder {
	b := formattest.New(uint32(rapid.IntRange(1, 4).Draw(t, "interval")) * 1024)
	if rapid.Bool().Draw(t, "primed") {
		b.Prime()
	}
	keys := []string{"a", "orders", "orders.dead", string(bytes.Repeat([]byte("k"), format.MaxKey))}
	for range rapid.IntRange(0, 25).Draw(t, "records") {
		key := rapid.SampledFrom(keys).Draw(t, "key")
		size := rapid.SampledFrom([]int{0, 1, 40, 500, 3000}).Draw(t, "size")
		room := 1024 - len(b.Bytes)%1024 - format.RecordLen(key, 0)
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			b.End()
			continue
		case 1:
			b.Reopen()
		case 2, 3:
			size = max(0, room+rapid.IntRange(-2, 2).Draw(t, "beside the place"))
		}
		fill := rapid.SampledFrom([]byte{0, 'x', 0x0d}).Draw(t, "fill")
		head := format.Head{Key: key, Sequence: uint64(len(b.Records) + 1), Time: formattest.Born + int64(len(b.Records))}
		b.Put(head, bytes.Repeat([]byte{fill}, size))
	}
	return b
}

// TestTailProperty cuts a file anywhere, with zeros behind it or not: it is
// torn there, and never damaged.
func TestTailProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawFile(t)
		cut := rapid.IntRange(format.HeaderSize, len(b.Bytes)).Draw(t, "cut")
		file := append(bytes.Clone(b.Bytes[:cut]), make([]byte, rapid.SampledFrom([]int{0, 0, 1, 100, 5000}).Draw(t, "zeros"))...)
		size := int64(len(file))
		whole := &formattest.Builder{}
		end, mark := int64(format.HeaderSize), int64(-1)
		for _, r := range b.Records {
			// The zeros may be what was cut off.
			if r.End > size || !bytes.Equal(file[r.At:r.End], b.Bytes[r.At:r.End]) {
				break
			}
			whole.Records = append(whole.Records, r)
			if end, mark = r.End, -1; r.Key == format.EndKey {
				mark = r.At
			}
		}
		all, err := index.ReadAll(bytes.NewReader(file), size, b.Header, format.HeaderSize, nil)
		if err != nil {
			t.Fatal(err)
		}
		tail, err := index.FindTail(bytes.NewReader(file), size, b.Header)
		if err != nil {
			t.Fatal(err)
		}
		if tail.Damage != nil || tail.Mark != mark || tail.End != all.End || tail.Mark != all.Mark || tail.Torn != all.Torn {
			t.Fatalf("cut at %d: got %+v and %+v, want the mark %d", cut, *tail, *all, mark)
		}
		if mark < 0 && (tail.End < end || tail.End+tail.Torn != size || tail.End > end && end%int64(b.Header.Interval) != 0) {
			t.Fatalf("cut at %d: got %+v, want the end %d", cut, *tail, end)
		}
		want := states(whole)
		if all.Complete = true; len(all.Keys) != len(want) {
			t.Fatalf("cut at %d: all keys %v, want %v", cut, all.Keys, want)
		}
		for k, s := range tail.Keys {
			if s.Sequence != want[k].Sequence {
				t.Errorf("cut at %d, key %s: got %+v, want %+v", cut, k, s, want[k])
			}
		}
		if tail.Complete && len(tail.Keys) != len(want) {
			t.Errorf("cut at %d: all keys are said to be %v, want %v", cut, tail.Keys, want)
		}
	})
}

// TestNothingGoodIsCutOff damages one byte and cuts the file: what FindTail says
// is torn holds no whole record that was not damaged.
func TestNothingGoodIsCutOff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawFile(t)
		if len(b.Bytes) == format.HeaderSize {
			return
		}
		file := bytes.Clone(b.Bytes[:rapid.IntRange(format.HeaderSize+1, len(b.Bytes)).Draw(t, "cut")])
		bad := int64(rapid.IntRange(format.HeaderSize, len(file)-1).Draw(t, "damaged"))
		file[bad] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		size := int64(len(file))
		tail, err := index.FindTail(bytes.NewReader(file), size, b.Header)
		if err != nil {
			t.Fatal(err)
		}
		if tail.Damage != nil {
			if tail.Torn != 0 {
				t.Errorf("%d bytes are torn although damaged: %v", tail.Torn, tail.Damage)
			}
			return
		}
		for _, r := range b.Records {
			if r.End <= size && (bad < r.At || bad >= r.End) && r.End > size-tail.Torn {
				t.Errorf("byte %d of %d is damaged: %+v loses the record from %d to %d", bad, size, *tail, r.At, r.End)
			}
		}
	})
}
