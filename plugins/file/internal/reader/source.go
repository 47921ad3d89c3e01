// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// anchorSize is how many bytes of the last record read are compared with what
// stands there later: its time is among them.
const anchorSize = 96

// source is an open segment, shared by the cursors that stand in it.
type source struct {
	r      *Reader
	file   *segment.File
	header format.Header
	raw    [format.HeaderSize]byte

	// Guarded by Reader.mu.
	refs   int
	number uint64 // of the segment, when it was last opened

	// Guarded by cache.mu.
	chunks  []*chunk // by place
	flights map[int64]*flight
	size    int64  // of the file at the last look
	memo    found  // the last look behind which nothing was
	sealed  bool   // nobody writes it any more: it is not the active one
	missing bool   // nor is there another one
	checked uint64 // generation up to which both were looked up, plus one

	mu      sync.Mutex
	anchor  anchor
	pending pending
	wary    int // how often the size of chunks is halved
}

// anchor is how the furthest record that was read begins.
type anchor struct {
	off  int64
	head []byte
}

// key tells sources apart. A file rewritten in place is another one.
type sourceKey struct {
	id      segment.ID
	created int64
}

func (s *source) key() sourceKey { return sourceKey{s.file.ID, s.header.Created} }

// newSource takes over an open file.
func newSource(r *Reader, f *segment.File) (*source, error) {
	s := &source{r: r, file: f, flights: make(map[int64]*flight), sealed: !f.Active, number: f.Number}
	if err := s.readFull(s.raw[:], 0); err != nil {
		return nil, err
	}
	var err error
	if s.header, err = format.ParseHeader(s.raw[:]); err != nil {
		return nil, segment.NewKindError(f.Path, err, true)
	}
	return s, nil
}

// change says that a file is not what it was.
type change struct {
	kind   Kind
	reason string
}

// examine returns the size of the file, and a change that makes what was read
// of it worthless.
func (s *source) examine() (int64, *change, error) {
	info, err := s.file.Stat()
	if err != nil {
		return 0, nil, fmt.Errorf("stat %s: %w", s.file.Path, err)
	}
	size := info.Size()
	if size < format.HeaderSize {
		return size, &change{Shrunk, fmt.Sprintf("the file has %d bytes now, less than a header", size)}, nil
	}
	var raw [format.HeaderSize]byte
	if err := s.readFull(raw[:], 0); err != nil {
		return 0, nil, err
	}
	if raw != s.raw {
		return size, &change{Replaced, "the file has been written anew: it has another header"}, nil
	}
	s.mu.Lock()
	var held [anchorSize]byte
	a := anchor{s.anchor.off, append(held[:0], s.anchor.head...)}
	s.mu.Unlock()
	if len(a.head) == 0 || size < a.off+int64(len(a.head)) {
		return size, nil, nil
	}
	var now [anchorSize]byte
	if err := s.readFull(now[:len(a.head)], a.off); err != nil {
		return 0, nil, err
	}
	if !bytes.Equal(now[:len(a.head)], a.head) {
		return size, &change{Replaced, fmt.Sprintf("the file has been written anew: another record stands at offset %d", a.off)}, nil
	}
	return size, nil, nil
}

// readFull fills b. A file that ends earlier leaves zeros, which fit nothing.
func (s *source) readFull(b []byte, off int64) error {
	n, err := s.file.ReadAt(b, off)
	clear(b[n:])
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s at offset %d: %w", s.file.Path, off, err)
	}
	return nil
}

// hold remembers the last record of a chunk, if none behind it is.
func (s *source) hold(c *chunk) {
	if len(c.entries) == 0 {
		return
	}
	e := &c.entries[len(c.entries)-1]
	head := c.buf[e.at:min(e.end, e.at+anchorSize)]
	s.mu.Lock()
	defer s.mu.Unlock()
	if off := c.off + int64(e.at); off > s.anchor.off {
		s.anchor = anchor{off: off, head: append(s.anchor.head[:0], head...)}
	}
}

// pending is a record in the making: it is not read again before there is
// enough of it, or its head has changed.
type pending struct {
	off, until int64
	head       []byte
	problem    *Problem
}

// leastPending is from which size on a record in the making is remembered, and
// headPending how much of it is compared.
const (
	leastPending = 4 << 10
	headPending  = 512
)

// awaited returns what is known of a record in the making at off that cannot
// be complete yet.
func (s *source) awaited(off, size int64) *Problem {
	s.mu.Lock()
	p := s.pending
	s.mu.Unlock()
	if p.head == nil || p.off != off || size >= p.until || size-off < int64(len(p.head)) {
		return nil
	}
	var now [headPending]byte
	if err := s.readFull(now[:], off); err == nil && bytes.Equal(now[:], p.head) {
		return p.problem
	}
	return nil
}

// await remembers a record in the making of which buf is the beginning.
func (s *source) await(off, until int64, buf []byte, problem *Problem) {
	if len(buf) < leastPending {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = pending{off: off, until: until, head: bytes.Clone(buf[:headPending]), problem: problem}
}
