// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// mostBeacon is longer than any beacon.
const mostBeacon = 72 << 10

// builders keeps what making a chunk needs besides it.
var builders = sync.Pool{New: func() any { return new(builder) }}

// fill reads what stands at the boundary off, up to limit if it is not 0: a
// chunk is to meet the one that begins there.
func (s *source) fill(off, limit int64) (found, error) {
	size, other, err := s.examine()
	if err != nil {
		return found{}, err
	}
	f := found{size: size, change: other}
	switch {
	case other != nil:
		f.standing = changed
		return f, nil
	case size < off:
		f.standing = changed
		f.change = &change{Shrunk, fmt.Sprintf("the file has %d bytes now, less than were read of it", size)}
		return f, nil
	case size == off:
		f.standing = nothing
		return f, nil
	}
	if p := s.awaited(off, size); p != nil {
		f.standing, f.problem = partial, p
		return f, nil
	}
	b := builders.Get().(*builder)
	defer builders.Put(b)
	window := min(s.window(), size-off)
	if limit > off {
		window = min(window, limit-off)
	}
	// A record longer than the window is read whole once the beacon in it says
	// the same: a length that is not true costs no more than that.
	beacon := format.NextPlace(off+1, s.header.Interval) + min(int64(s.header.Interval), mostBeacon)
	cover := min(size-off, max(int64(s.r.chunk), beacon-off))
	for {
		buf, err := s.read(off, window)
		if err != nil {
			return found{}, err
		}
		if int64(len(buf)) < window {
			// It shrank meanwhile: the next look tells.
			size = off + int64(len(buf))
			f.size = size
			if len(buf) == 0 {
				f.standing = nothing
				return f, nil
			}
		}
		b.reset(s.header.Interval)
		stop := b.parse(buf, off, size, s.r.intern)
		s.r.parsed.Add(int64(stop.at))
		s.went(stop.damage == nil)
		if stop.at > 0 {
			used, held := s.r.slab.trim(buf, stop.at)
			f.chunk = b.chunk(s, off, off+int64(stop.at), used, held)
			if cap(buf) == s.r.chunk && cap(buf) > slabMost {
				f.chunk.memory = buf[:cap(buf)]
			}
			s.name(f.chunk)
			s.hold(f.chunk)
			return f, nil
		}
		have := int64(len(buf))
		if stop.short > 0 && (b.nothing(buf, 0, off, size) || int64(len(buf)) == size-off && format.EndRest(buf)) {
			s.r.slab.trim(buf, 0)
			f.standing = nothing
			return f, nil
		}
		if stop.short > 0 {
			need := max(int64(stop.short), have+1)
			switch {
			case have < cover && have < need:
				window = min(max(need, int64(s.r.chunk)), cover)
			case off+need <= size:
				// The beacons within may be longer than the least.
				window = min(need+int64(s.r.chunk), size-off)
			default:
				f.standing, f.problem = partial, s.torn(buf, off, need, size)
				until := off + need
				if beacon > size {
					until = min(until, beacon)
				}
				s.await(off, until, buf, f.problem)
				s.r.slab.trim(buf, 0)
				return f, nil
			}
			s.r.slab.trim(buf, 0)
			continue
		}
		err = s.standstill(&f, stop, buf, off, size)
		s.r.slab.trim(buf, 0)
		return f, err
	}
}

// leastWindow is how much is read at a time behind damage.
const leastWindow = 4 << 10

// window is how much is read for the next chunk.
func (s *source) window() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.r.chunk) >> s.wary
}

// went takes note of whether a chunk ended without damage. Behind damage there
// may be more, which would cost as much each time as was read.
func (s *source) went(well bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !well:
		for s.r.chunk>>s.wary > leastWindow {
			s.wary++
		}
	case s.wary > 0:
		s.wary--
	}
}

// read reads up to n bytes at off into memory that nothing else is written
// to, as far as it is kept.
func (s *source) read(off, n int64) ([]byte, error) {
	buf := s.r.memory(int(n))
	got, err := s.file.ReadAt(buf, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s at offset %d: %w", s.file.Path, off, err)
	}
	s.r.loaded.Add(int64(got))
	return buf[:got], nil
}

// standstill says what it is that no record could be read of.
func (s *source) standstill(f *found, stop stop, buf []byte, off, size int64) error {
	if stop.damage == nil {
		f.standing = marked
		return nil
	}
	p := s.damage(stop.damage)
	next, err := s.resync(stop.damage.Offset, size)
	switch {
	case err != nil:
		return err
	case next > 0:
		p.Skipped = next - p.Offset
		p.Reason += fmt.Sprintf("; reading goes on behind the beacon before offset %d", next)
		f.chunk = &chunk{src: s, off: off, next: next, flaws: []flaw{{problem: p}}}
	case int64(len(buf)) == size-off && format.EndRest(buf):
		f.standing = nothing
	case len(bytes.TrimLeft(buf, "\x00")) == 0:
		f.standing, f.problem = partial, &Problem{Kind: TornTail, Path: s.file.Path, Offset: off, Reason: "zeros where a record would begin"}
	default:
		f.standing, f.problem = damaged, p
	}
	return nil
}

// resync returns the boundary to go on at after damage at the offset at: the
// one that the next readable beacon tells. 0 = there is none yet.
func (s *source) resync(at, size int64) (int64, error) {
	parser := format.Parser{Interval: s.header.Interval}
	interval := int64(s.header.Interval)
	longest := min(interval, mostBeacon)
	var buf []byte // several places where they are close to one another
	var from int64
	n := longest // at first: as a rule the next one will do
	for place := format.NextPlace(at+1, s.header.Interval); place < size; place += interval {
		if rest := from + int64(len(buf)) - place; rest < min(longest, size-place) {
			var err error
			if buf, err = s.ahead(buf, place, n); err != nil {
				return 0, err
			}
			from, n = place, max(longest, min(2*n, lookAhead))
		}
		b := buf[place-from:]
		if len(b) > 0 && !format.Closes(b[0]) { // nor does a beacon begin with it
			continue
		}
		next, ok, err := parser.Boundary(b, place)
		switch {
		case err == nil && ok && next <= size:
			return next, nil
		case err == nil && ok, errors.Is(err, io.ErrUnexpectedEOF) && place+int64(len(b)) >= size:
			return 0, nil // in the making
		}
	}
	return 0, nil
}

// lookAhead is how much is read at a time in the search for a beacon.
const lookAhead = 256 << 10

// ahead reads up to n bytes at off into buf, or a larger one.
func (s *source) ahead(buf []byte, off, n int64) ([]byte, error) {
	if int64(cap(buf)) < n {
		buf = make([]byte, n)
	}
	got, err := s.file.ReadAt(buf[:n], off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s at offset %d: %w", s.file.Path, off, err)
	}
	return buf[:got], nil
}

// damage makes a problem of what the parser says.
func (s *source) damage(d *format.DamageError) *Problem {
	return &Problem{Kind: Damage, Path: s.file.Path, Offset: d.Offset, Key: d.Key, Sequence: d.Sequence, Reason: d.Reason}
}

// name gives the problems of a chunk their path.
func (s *source) name(c *chunk) {
	for _, f := range c.flaws {
		f.problem.Path = s.file.Path
	}
}

// torn makes a problem of a record that is not whole.
func (s *source) torn(buf []byte, off, need, size int64) *Problem {
	p := &Problem{Kind: TornTail, Path: s.file.Path, Offset: off, Reason: fmt.Sprintf("a record of which %d of %d bytes or more are there", size-off, need)}
	if off%int64(s.header.Interval) == 0 {
		return p
	}
	if k := int(buf[0]); len(buf) >= 1+k+16 && int64(1+k+16) <= format.NextPlace(off, s.header.Interval)-off {
		p.Key, p.Sequence = string(buf[1:1+k]), binary.BigEndian.Uint64(buf[1+k+8:])
	}
	return p
}
