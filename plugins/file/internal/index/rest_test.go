// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
)

// TestWrittenOverBeacon has a file that ended at a beacon, with an end mark
// behind it, and was opened again by a writer that writes over both: a beacon
// without markers and records.
func TestWrittenOverBeacon(t *testing.T) {
	b := formattest.New(4096)
	keys := []string{"orders", "orders.eu", "other"}
	for _, k := range keys {
		b.Add(k, "x")
	}
	fill := 4096 - len(b.Bytes) - format.RecordLen("orders", 0)
	b.Add("orders", strings.Repeat("x", fill))
	beacon := len(b.Bytes)
	b.End()
	for _, old := range [][]byte{b.Bytes, b.Bytes[:beacon]} {
		over := format.AppendBeacon(bytes.Clone(old[:4096]), format.Beacon{})
		end := len(over)
		for n := range uint64(4) {
			file := append(bytes.Clone(over), old[min(len(old), len(over)):]...)
			tail := findTail(t, b.Header, file)
			if tail.Damage != nil || tail.End != int64(end) || tail.Torn != int64(len(file)-end) {
				t.Errorf("%d records written over the end of %d bytes: got %+v, want the end %d", n, len(old), *tail, end)
			}
			over = format.AppendRecord(over, format.Head{Key: "k", Sequence: n + 1, Time: formattest.Born}, []byte("y"))
			end = len(over)
		}
	}
}

// TestWrittenOverMark has an end mark around the place of a beacon, and a writer
// that writes over it, with fewer markers in the beacon at that place.
func TestWrittenOverMark(t *testing.T) {
	for fill := range 70 {
		build := func() *formattest.Builder {
			b := formattest.New(4096)
			for _, k := range []string{"a", "b", "c", "d", "e"} {
				b.Add(k, "x")
			}
			b.Add("a", strings.Repeat("x", 4096-len(b.Bytes)-format.RecordLen("a", 0)-fill))
			return b
		}
		old := build()
		mark := old.End()
		for records := 1; records < 4; records++ {
			over := build()
			over.Reopen()
			for range records {
				over.Add("f", "y")
			}
			if len(over.Bytes) >= len(old.Bytes) {
				continue
			}
			file := append(bytes.Clone(over.Bytes), old.Bytes[len(over.Bytes):]...)
			tail := findTail(t, old.Header, file)
			if tail.Damage != nil || tail.End != int64(len(over.Bytes)) || tail.Torn != int64(len(file)-len(over.Bytes)) || tail.Mark != -1 {
				t.Errorf("a mark from %d to %d, %d records over it: got %+v, want the end %d of %d",
					mark.At, mark.End, records, *tail, len(over.Bytes), len(file))
			}
		}
	}
}
