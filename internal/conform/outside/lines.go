// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"bytes"
	"fmt"
)

// maxLine is the longest line of a collector: the largest message of the
// protocol, 64 MiB, takes 86 MiB in base64.
const maxLine = 96 << 20

// LineError says what is wrong with a line of a collector.
type LineError struct {
	Line int    // from 1
	Text string // its beginning
	Err  error
}

// shownText is how much of a wrong line an error shows.
const shownText = 80

// Error names the line, shows its beginning, and says what to do.
func (e *LineError) Error() string {
	return fmt.Sprintf("line %d of its output, %q: %v", e.Line, e.Text, e.Err)
}

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// lines cuts what is written to it into lines. The first one that each refuses
// is the last: failed gets a *LineError, and so does whoever writes.
type lines struct {
	max    int
	each   func(line []byte) error
	failed func(error)

	n     int
	begun []byte // of a line whose end is to come
	err   error
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && l.err == nil; {
		i := bytes.IndexByte(rest, '\n')
		end := i
		if i < 0 {
			end = len(rest)
		}
		if len(l.begun)+end > l.max {
			l.fail(append(l.begun, rest[:min(end, shownText)]...), fmt.Errorf("it is longer than %d bytes; is it a collector?", l.max))
			break
		}
		if i < 0 {
			l.begun = append(l.begun, rest...)
			break
		}
		l.line(rest[:end])
		rest = rest[end+1:]
	}
	if l.err != nil {
		return 0, l.err
	}
	return len(p), nil
}

// line takes the end of a line. Lines without anything are passed over.
func (l *lines) line(end []byte) {
	text := end
	if len(l.begun) > 0 {
		text = append(l.begun, end...)
		l.begun = nil // a large line is not kept for small ones
	}
	l.n++
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return
	}
	if err := l.each(text); err != nil {
		l.n--
		l.fail(text, err)
	}
}

func (l *lines) fail(text []byte, err error) {
	l.err = &LineError{Line: l.n + 1, Text: string(bytes.ToValidUTF8(text[:min(len(text), shownText)], nil)), Err: err}
	l.begun = nil
	l.failed(l.err)
}
