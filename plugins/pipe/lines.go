// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// chunk is how much is read at a time.
const chunk = 64 << 10

// byteOrderMark is what some programs put before UTF-8 text.
const byteOrderMark = "\xef\xbb\xbf"

// input is where lines come from.
type input interface {
	Read(ctx context.Context, p []byte) (int, error)
}

// lines cuts an input into lines. A line given out keeps its memory: the
// buffer is never written again where a line lies.
type lines struct {
	limit   int // longest line
	buf     []byte
	start   int    // of what is not given out
	scanned int    // no line break before it
	number  uint64 // lines given out or skipped
	given   bool   // a line lies in buf
	skipped int64  // bytes of a line over the limit; 0 = none under way
	eof     bool
}

// rawLine is a line and its number, from 1. A line over the limit has no text
// but a length.
type rawLine struct {
	number uint64
	text   []byte
	tooBig int64
}

// next returns the next line that is there, without its line break. It reports
// false when more input is needed, or there is none.
func (l *lines) next() (rawLine, bool) {
	i := bytes.IndexByte(l.buf[l.scanned:], '\n')
	switch {
	case i >= 0:
		end := l.scanned + i
		return l.give(end, end+1), true
	case l.skipped > 0 && !l.eof, len(l.buf)-l.start > l.limit:
		// Not kept: the length is all that is told of it.
		l.skipped += int64(len(l.buf) - l.start)
		l.buf, l.start, l.scanned, l.given = nil, 0, 0, false
		return rawLine{}, false
	case l.eof && (len(l.buf) > l.start || l.skipped > 0):
		return l.give(len(l.buf), len(l.buf)), true
	}
	l.scanned = len(l.buf)
	return rawLine{}, false
}

// give returns what lies before end and goes on at next.
func (l *lines) give(end, next int) rawLine {
	l.number++
	r := rawLine{number: l.number, text: l.buf[l.start:end:end]}
	if l.skipped > 0 || len(r.text) > l.limit {
		r.text, r.tooBig = nil, l.skipped+int64(end-l.start)
		l.skipped = 0
	} else {
		l.given = true
	}
	if l.number == 1 && bytes.HasPrefix(r.text, []byte(byteOrderMark+"[")) {
		// Before brackets the mark stands in their way; a payload keeps it.
		r.text = r.text[len(byteOrderMark):]
	}
	l.start, l.scanned = next, next
	return r
}

// fill reads more. It returns nil at the end of the input too, which next
// tells.
func (l *lines) fill(ctx context.Context, in input) error {
	l.room()
	n, err := in.Read(ctx, l.buf[len(l.buf):cap(l.buf)])
	l.buf = l.buf[:len(l.buf)+n]
	if errors.Is(err, io.EOF) {
		l.eof = true
		return nil
	}
	return err
}

// room makes place for a read behind what is there.
func (l *lines) room() {
	const least = chunk / 4
	if cap(l.buf)-len(l.buf) >= least {
		return
	}
	kept := l.buf[l.start:]
	if !l.given && l.start > 0 && cap(l.buf)-len(kept) >= least {
		l.buf = append(l.buf[:0], kept...)
	} else {
		size := chunk
		for size < 2*len(kept) || size-len(kept) < least {
			size *= 2
		}
		l.buf = append(make([]byte, 0, min(size, max(l.limit+chunk, chunk))), kept...)
		l.given = false
	}
	l.scanned -= l.start
	l.start = 0
}
