// SPDX-License-Identifier: Apache-2.0

package formattest

import (
	"errors"
	"io"
	"os"
	"slices"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// Sparse is a file that is zero but for some parts, which are in order and do
// not overlap.
type Sparse struct {
	parts []part
	size  int64
}

// Size is how long the file is.
func (s *Sparse) Size() int64 { return s.size }

// WriteFile writes the file to path, with holes where it is zero.
func (s *Sparse) WriteFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	for _, p := range s.parts {
		if _, err := f.WriteAt(p.bytes, p.at); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(f.Truncate(s.size), f.Close())
}

type part struct {
	at    int64
	bytes []byte
}

func (s *Sparse) put(b []byte) {
	s.parts = append(s.parts, part{s.size, slices.Clone(b)})
	s.size += int64(len(b))
}

// ReadAt reads as io.ReaderAt says.
func (s *Sparse) ReadAt(p []byte, off int64) (int, error) {
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

// Large has records of 64 MiB of zeros that take turns on the keys orders and
// other, and a beacon at every MiB. It returns where the records begin.
func Large(records int) (*Sparse, format.Header, []int64) {
	const payload = 64 << 20
	crc := format.Checksum(make([]byte, payload))
	h := format.Header{Name: "large.ss", Created: Born, Interval: format.DefaultInterval}
	s := &Sparse{}
	s.put(h.Append(nil))
	s.put(format.AppendRecord(nil, format.Head{Key: format.PrimeKey, Sequence: 1, Time: Born}, []byte("1")))
	var at []int64
	markers := make([]format.Marker, 3)
	markers[2].Head = format.Head{Key: format.PrimeKey, Sequence: 1, Time: Born}
	for i := range records {
		key := []string{"orders", "other"}[i%2]
		head := format.Head{Key: key, Sequence: uint64(i/2 + 1), Time: Born + int64(i)}
		markers[i%2].Head = head
		if i == 0 {
			markers[1].Head = format.Head{Key: "other", Time: Born}
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
