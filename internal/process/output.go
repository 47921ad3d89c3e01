// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lineLimit is the longest line that is kept whole; what follows of a longer
// one counts as a line of its own. A handshake with a certificate has about
// 1,500 bytes, a stack in a log line some 10 KiB.
const lineLimit = 1 << 20

// eachLine calls f with every line of r, without its end, until r ends or is
// closed. The line is valid during the call. It never stops reading early: a
// pipe that nobody reads stops the plugin.
func eachLine(r io.Reader, f func(line []byte)) {
	buf := make([]byte, 0, 4096)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		from := len(buf)
		buf = buf[:len(buf)+n]
		start := 0
		for {
			i := bytes.IndexByte(buf[max(start, from):], '\n')
			if i < 0 {
				break
			}
			end := max(start, from) + i
			cutLong(bytes.TrimSuffix(buf[start:end], []byte{'\r'}), f)
			start = end + 1
		}
		if len(buf)-start >= lineLimit {
			f(buf[start : start+lineLimit])
			start += lineLimit
		}
		if start > 0 {
			buf = buf[:copy(buf, buf[start:])]
		}
		if err != nil {
			if len(buf) > 0 {
				cutLong(buf, f)
			}
			return
		}
	}
}

func cutLong(line []byte, f func([]byte)) {
	for len(line) > lineLimit {
		f(line[:lineLimit])
		line = line[lineLimit:]
	}
	f(line)
}

// pipeRoom is the most that a pipe holds where the system's limit is not raised.
const pipeRoom = 1 << 20

// pipeReader reads a pipe until its end; once the pipe's read deadline has
// passed, what is in it still, and no more than it holds.
type pipeReader struct {
	f    *os.File
	late int // bytes read behind the deadline
}

func (p *pipeReader) Read(b []byte) (int, error) {
	n, err := p.f.Read(b)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	conn, err := p.f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = conn.Control(func(fd uintptr) { n, failed = unix.Read(int(fd), b) }) // does not block: os.Pipe's
	if err = errors.Join(err, failed); err != nil || n == 0 || p.late >= pipeRoom {
		return 0, io.EOF
	}
	p.late += n
	return n, nil
}

// lineWriter passes on what is written to it line by line. Its one user writes
// from one goroutine.
type lineWriter struct {
	line func([]byte)
	rest []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		head, tail, ok := bytes.Cut(p, []byte{'\n'})
		if !ok {
			break
		}
		w.line(append(w.rest, head...))
		w.rest, p = w.rest[:0], tail
	}
	w.rest = append(w.rest, p...)
	if len(w.rest) >= lineLimit {
		w.line(w.rest)
		w.rest = w.rest[:0]
	}
	return n, nil
}

// once hands a reader one text and then the end. go-plugin reads a plugin's
// stdout through it: the one line of the handshake, so that noise before and
// after cannot disturb it.
type once struct {
	r *io.PipeReader
	w *io.PipeWriter
}

func newOnce() *once {
	r, w := io.Pipe()
	return &once{r: r, w: w}
}

// give hands over the text; it blocks until it is read or the reader is gone.
func (o *once) give(text []byte) {
	_, err := o.w.Write(text)
	if !errors.Is(err, io.ErrClosedPipe) {
		_ = o.w.Close()
	}
}

// end ends the reader without any, or further, text.
func (o *once) end() { _ = o.w.Close() }

// nothing is a reader that is at its end, for go-plugin's idea of stderr.
type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, io.EOF }
func (nothing) Close() error             { return nil }
