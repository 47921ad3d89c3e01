// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
	"github.com/longshore-go/longshore/plugins/file/internal/index"
)

var errDisk = errors.New("disk")

// failing fails the read after so many.
type failing struct {
	io.ReaderAt
	left int
}

func (f *failing) ReadAt(p []byte, off int64) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errDisk
	}
	return f.ReaderAt.ReadAt(p, off)
}

// TestReadErrors fails every read there is: whoever reads says so.
func TestReadErrors(t *testing.T) {
	b := several(1024, 10, 300, "orders", "other")
	b.Put(format.Head{Key: "large", Sequence: 1}, make([]byte, 600_000))
	b.Add("orders", "x")
	file := append(bytes.Clone(b.Bytes), format.AppendRecord(nil, format.Head{Key: "orders"}, make([]byte, 2000))[:50]...)
	file[5000] ^= 1
	file[8191] ^= 1
	size := int64(len(file))
	for name, call := range map[string]func(io.ReaderAt) error{
		"the end": func(r io.ReaderAt) error { _, err := index.FindTail(r, size, b.Header); return err },
		"all": func(r io.ReaderAt) error {
			_, err := index.ReadAll(r, size, b.Header, format.HeaderSize, nil)
			return err
		},
		"sequence": func(r io.ReaderAt) error { _, err := index.Sequence(r, size, b.Header, "orders", 9); return err },
		"time":     func(r io.ReaderAt) error { _, err := index.Time(r, size, b.Header, nil, formattest.Born+9); return err },
		"torn":     func(r io.ReaderAt) error { _, err := index.Torn(r, size, b.Header, int64(len(b.Bytes))); return err },
	} {
		for reads := 0; ; reads++ {
			from := &failing{bytes.NewReader(file), reads}
			err := call(from)
			if from.left >= 0 {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				break
			}
			if !errors.Is(err, errDisk) {
				t.Fatalf("%s: read %d fails: error %v", name, reads+1, err)
			}
		}
	}
}

// TestLargeRecords has records whose payload is not read, damaged where it is
// seen all the same.
func TestLargeRecords(t *testing.T) {
	b := formattest.New(64 << 10)
	b.Prime()
	b.Add("orders", strings.Repeat("x", 500_000))
	large := b.Add("orders", strings.Repeat("y", 500_000))
	b.Add("orders", "z")
	for _, test := range []struct {
		name string
		at   int64
		want []uint64
	}{
		{"payload", large.At + 1000, []uint64{1, 1, 2, 3}},
		{"closing byte", large.End - 1, []uint64{1, 1, 3}},
		{"beacon", 13 << 16, []uint64{1, 1, 3}},
		{"number in a beacon", 13<<16 + 4, []uint64{1, 1, 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := bytes.Clone(b.Bytes)
			file[test.at] ^= 0x40
			size := int64(len(file))
			var got []uint64
			all, err := index.ReadAll(bytes.NewReader(file), size, b.Header, format.HeaderSize, func(_ int64, rec *format.Record) {
				got = append(got, rec.Sequence)
			})
			if diff := cmp.Diff(got, test.want); diff != "" || err != nil {
				t.Errorf("sequences with error %v: got -, want +:\n%s", err, diff)
			}
			for _, tail := range []*index.Tail{all, findTail(t, b.Header, file)} {
				if tail.Damage != nil || tail.End != size || tail.Keys["orders"].Sequence != 3 {
					t.Errorf("got %+v, want the end %d", *tail, size)
				}
			}
		})
	}
}
