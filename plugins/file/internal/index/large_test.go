// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"io"
	"slices"
	"testing"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
	"github.com/longshore-go/longshore/plugins/file/internal/index"
)

// sparse is a file that is zero but for some parts, which are in order and do
// not overlap.
type sparse struct {
	parts []part
	size  int64
}

type part struct {
	at    int64
	bytes []byte
}

func (s *sparse) put(b []byte) {
	s.parts = append(s.parts, part{s.size, slices.Clone(b)})
	s.size += int64(len(b))
}

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	n := int(min(int64(len(p)), s.size-off))
	clear(p[:n])
	i, _ := slices.BinarySearchFunc(s.parts, off, func(p part, off int64) int {
		if p.at+int64(len(p.bytes)) <= off {
			return -1
		}
		return 1
	})
	for ; i < len(s.parts) && s.parts[i].at < off+int64(n); i++ {
		part := s.parts[i]
		skip := max(0, off-part.at)
		copy(p[max(0, part.at-off):n], part.bytes[skip:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// largeFile has records of 64 MiB of zeros on two keys, and a beacon at every
// MiB.
func largeFile(records int) (*sparse, format.Header, []int64) {
	const payload = 64 << 20
	crc := format.Checksum(make([]byte, payload))
	h := format.Header{Name: "large.ss", Created: formattest.Born, Interval: format.DefaultInterval}
	s := &sparse{}
	s.put(h.Append(nil))
	s.put(format.AppendRecord(nil, format.Head{Key: format.PrimeKey, Sequence: 1, Time: formattest.Born}, []byte("1")))
	var at []int64
	markers := make([]format.Marker, 3)
	markers[2].Head = format.Head{Key: format.PrimeKey, Sequence: 1, Time: formattest.Born}
	for i := range records {
		key := []string{"orders", "other"}[i%2]
		head := format.Head{Key: key, Sequence: uint64(i/2 + 1), Time: formattest.Born + int64(i)}
		markers[i%2].Head = head
		if i == 0 {
			markers[1].Head = format.Head{Key: "other", Time: formattest.Born}
		}
		at = append(at, s.size)
		first := format.AppendHead(nil, head, payload)
		last := format.AppendTail(nil, crc)
		left := int64(len(first) + payload + len(last))
		s.put(first) // no beacon falls into a head or a tail here
		left -= int64(len(first))
		for left > 0 {
			n := min(left, int64(h.Interval)-s.size%int64(h.Interval))
			if n == left {
				s.size += n - int64(len(last))
				s.put(last)
				break
			}
			s.size += n
			left -= n
			s.put(format.AppendBeacon(nil, format.Beacon{Remaining: uint32(left), Markers: markers}))
		}
	}
	return s, h, at
}

// TestSixteenGiB reads little of a large file.
func TestSixteenGiB(t *testing.T) {
	const most = 8 << 20
	s, h, at := largeFile(256)
	if s.size < 16<<30 {
		t.Fatalf("%d bytes", s.size)
	}
	tail, err := index.FindTail(s, s.size, h)
	if err != nil {
		t.Fatal(err)
	}
	if tail.End != s.size || !tail.Complete || tail.Keys["orders"].Sequence != 128 || tail.Keys["other"].Sequence != 128 || tail.Read > most {
		t.Errorf("got %+v, want the end %d", *tail, s.size)
	}
	t.Logf("the end: %d bytes read", tail.Read)

	torn := s.size - 1000
	if tail, err = index.FindTail(s, torn, h); err != nil {
		t.Fatal(err)
	}
	if tail.End != at[255] || tail.Torn != torn-at[255] || tail.Keys["other"].Sequence != 127 || tail.Read > most {
		t.Errorf("a torn record: got %+v, want the end %d", *tail, at[255])
	}
	t.Logf("the end, torn: %d bytes read", tail.Read)

	from := &counting{ReaderAt: s}
	got, err := index.Sequence(from, s.size, h, "other", 50)
	if want := (index.Found{Offset: at[99], OK: true}); got != want || err != nil || from.n > most {
		t.Errorf("a sequence: got %+v and error %v, %d bytes read, want %+v", got, err, from.n, want)
	}
	t.Logf("a sequence: %d bytes read", from.n)

	from = &counting{ReaderAt: s}
	got, err = index.Time(from, s.size, h, nil, formattest.Born+200)
	if want := (index.Found{Offset: at[201], OK: true}); got != want || err != nil || from.n > most {
		t.Errorf("a time: got %+v and error %v, %d bytes read, want %+v", got, err, from.n, want)
	}
	t.Logf("a time: %d bytes read", from.n)

	all, err := index.ReadAll(s, s.size, h, format.HeaderSize, nil)
	if err != nil || all.End != s.size || all.Keys["other"].Sequence != 128 || all.Read > 16*most {
		t.Errorf("all heads: got %+v and error %v", *all, err)
	}
	t.Logf("all heads: %d bytes read", all.Read)
}

// BenchmarkFindTail is the first thing that opening a file costs.
func BenchmarkFindTail(b *testing.B) {
	build := formattest.New(format.DefaultInterval)
	build.Prime()
	for range 100_000 {
		build.Add("orders", "a payload of some sixty bytes, as small messages tend to be.")
	}
	s := &sparse{parts: []part{{0, build.Bytes}}, size: int64(len(build.Bytes))}
	for b.Loop() {
		if _, err := index.FindTail(s, s.size, build.Header); err != nil {
			b.Fatal(err)
		}
	}
}
