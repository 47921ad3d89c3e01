// SPDX-License-Identifier: Apache-2.0

package position

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/longshore-go/longshore/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var errFull = errors.New("no space left on device")

// memory is a disk in memory that can break.
type memory struct {
	bytes  []byte
	last   write
	writes int
	fail   int  // writes that fail first,
	short  int  // after so many bytes
	failed bool // the last write
	closed bool
}

// write is what a write did.
type write struct {
	at       int
	old, now []byte
}

func (m *memory) ReadAt(p []byte, at int64) (int, error) {
	if at >= int64(len(m.bytes)) {
		return 0, io.EOF
	}
	n := copy(p, m.bytes[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m *memory) WriteAt(p []byte, at int64) (int, error) {
	m.writes++
	var err error
	if m.failed = m.fail > 0; m.failed {
		m.fail--
		p, err = p[:min(len(p)-1, m.short)], errFull
	}
	if need := int(at) + len(p); need > len(m.bytes) {
		m.bytes = append(m.bytes, make([]byte, need-len(m.bytes))...)
	}
	region := m.bytes[at:][:len(p)]
	m.last = write{int(at), slices.Clone(region), slices.Clone(p)}
	return copy(region, p), err
}

func (m *memory) Truncate(n int64) error {
	m.bytes = m.bytes[:min(int(n), len(m.bytes))]
	return nil
}

func (m *memory) Close() error { m.closed = true; return nil }

// again returns the disk as another process finds it.
func (m *memory) again() *memory { return &memory{bytes: slices.Clone(m.bytes)} }

// torn returns the disk as it is when only the first n bytes of the last write,
// or all but the first n, have reached it.
func (m *memory) torn(n int, first bool) *memory {
	d := m.again()
	n = min(n, len(m.last.now))
	if first {
		copy(d.bytes[m.last.at+n:], m.last.old[n:])
	} else {
		copy(d.bytes[m.last.at:], m.last.old[:n])
	}
	return d
}

func mustOpen(t interface {
	Helper()
	Fatal(...any)
}, d disk) *Tracker {
	t.Helper()
	tr, err := open(d, "test.pos")
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// stream is made of records that begin at these places.
func stream(n int) []Mark {
	s := make([]Mark, n)
	p := Place{Created: 1_790_000_000_000, Offset: 128}
	for i := range s {
		s[i] = Mark{Place: p, Sequence: uint64(i + 1), Time: p.Created + int64(i)}
		p.Offset += int64(40 + i*i%5000)
		if i%97 == 96 {
			p = Place{Created: p.Created + 3_600_000, Offset: 128}
		}
	}
	return s
}

// pending is what a reopened tracker hands out again, with the attempt that each
// record had.
func pending(t *Tracker) []saved {
	var all []saved
	for e := t.list.first; e != nil; e = e.next {
		all = append(all, saved{e.Place, e.Attempt})
	}
	return all
}

func acks(es ...*Entry) []Verdict {
	var vs []Verdict
	for _, e := range es {
		vs = append(vs, Verdict{Entry: e})
	}
	return vs
}
