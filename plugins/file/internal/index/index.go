// SPDX-License-Identifier: Apache-2.0

// Package index finds places in stream files without reading them whole: their
// end, the latest record of each key, and records by sequence or time. It goes
// by the beacons, and reads records only between two of them.
//
// What stands in files is believed as far as package format believes it:
// markers and the heads of records are guarded by no checksum. Payloads of large
// records are not read, so that damage in them is not seen here.
package index

import (
	"errors"
	"fmt"
	"io"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

const (
	// ahead is how much is read at a time where records follow one another.
	ahead = 64 << 10
	// probe is how much is read to see one beacon or head.
	probe = 4 << 10
	// large is the record whose payload is not read.
	large = 256 << 10
)

// file is a stream file being looked at. What lies at size or behind it does not
// exist, even if the file grows meanwhile.
type file struct {
	from   io.ReaderAt
	size   int64
	parser format.Parser
	buf    []byte
	at     int64 // where buf begins
	read   int64 // bytes read so far
}

func open(from io.ReaderAt, size int64, h format.Header) *file {
	return &file{from: from, size: size, parser: format.Parser{Interval: h.Interval}}
}

func (f *file) interval() int64 { return int64(f.parser.Interval) }

// bytes gives need bytes from off on, or all there are, and more where they are
// at hand. It reads atOnce bytes where it has to read. The result is good until
// the next call.
func (f *file) bytes(off int64, need, atOnce int) ([]byte, error) {
	if off >= f.size {
		return nil, nil
	}
	need = int(min(int64(need), f.size-off))
	if off >= f.at && off+int64(need) <= f.at+int64(len(f.buf)) {
		return f.buf[off-f.at : min(int64(len(f.buf)), f.size-f.at)], nil
	}
	n := int(min(int64(max(need, atOnce)), f.size-off))
	if cap(f.buf) < n {
		f.buf = make([]byte, n)
	}
	f.buf, f.at = f.buf[:n], off
	got, err := f.from.ReadAt(f.buf, off)
	f.read += int64(got)
	if got < n {
		f.buf = f.buf[:0]
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("read %d bytes at offset %d: %w", n, off, err)
	}
	return f.buf, nil
}

// parse calls take with bytes from off on, with more of them as long as take
// says that it needs more and the file has them.
func (f *file) parse(off int64, atOnce int, take func(b []byte) error) error {
	for need := 1; ; {
		b, err := f.bytes(off, need, atOnce)
		if err != nil {
			return err
		}
		err = take(b)
		short, ok := errors.AsType[*format.ShortError](err)
		if !ok || int64(short.Need) > f.size-off {
			return err
		}
		need = short.Need
	}
}

// beacon reads the beacon at place, with its markers. ok is false where none can
// be read.
func (f *file) beacon(place int64) (b format.Beacon, end int64, ok bool, err error) {
	atOnce := probe
	if f.interval() < ahead { // the next one is close, too
		atOnce = ahead
	}
	first, err := f.bytes(place, 1, atOnce)
	if err != nil || len(first) == 0 || !format.Closes(first[0]) {
		return format.Beacon{}, 0, false, err
	}
	err = f.parse(place, atOnce, func(in []byte) error {
		if _, _, err := f.parser.Beacon(in); err != nil {
			return err
		}
		var n int
		b, n, err = format.ParseBeacon(in)
		end = place + int64(n)
		return err
	})
	if unreadable(err) {
		return format.Beacon{}, 0, false, nil
	}
	return b, end, err == nil, err
}

// unreadable reports whether the error is about what stands in the file, not
// about reading it.
func unreadable(err error) bool {
	return errors.As(err, new(*format.ShortError)) || errors.As(err, new(*format.BeaconError)) ||
		errors.As(err, new(*format.DamageError))
}
