// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Stdio is the host's standard input and output, for the one endpoint that was
// attached with them.
//
// # Caveats
//
// Both descriptors are shared with other processes: a shell, the stages before
// and behind. Their flags are never changed; a descriptor that came
// non-blocking stays so, one that came blocking stays so.
type Stdio struct {
	In  *StdioReader
	Out *StdioWriter
}

// NewStdio returns Stdio over duplicates of in and out, which stay the
// caller's. Close closes the duplicates.
func NewStdio(in, out *os.File) (*Stdio, error) {
	r, err := duplicate(in)
	if err != nil {
		return nil, fmt.Errorf("duplicate standard input: %w", err)
	}
	w, err := duplicate(out)
	if err != nil {
		_ = unix.Close(r)
		return nil, fmt.Errorf("duplicate standard output: %w", err)
	}
	s, err := newStdio(r, w)
	if err != nil {
		_ = unix.Close(r)
		_ = unix.Close(w)
	}
	return s, err
}

// Close closes both descriptors. A Read or Write under way ends with
// os.ErrClosed.
func (s *Stdio) Close() error {
	return errors.Join(s.In.Close(), s.Out.Close())
}

// StdioReader reads the host's standard input. One goroutine may read at a
// time; Close may be called from any.
type StdioReader struct{ p *polled }

// Read fills p with what is there, and waits for at least one byte. It returns
// io.EOF at the end of the input, the context's error when ctx ends first, and
// os.ErrClosed after Close. Nothing is consumed when it returns an error.
func (r *StdioReader) Read(ctx context.Context, p []byte) (int, error) {
	if len(p) == 0 {
		return 0, ctx.Err()
	}
	r.p.use.Lock()
	defer r.p.use.Unlock()
	for {
		if err := r.p.wait(ctx, unix.POLLIN); err != nil {
			return 0, err
		}
		switch n, err := unix.Read(r.p.fd, p); {
		case again(err): // another reader was faster
		case err != nil:
			return 0, fmt.Errorf("read standard input: %w", err)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Close closes the reader's descriptor. It may be called twice.
func (r *StdioReader) Close() error { return r.p.close() }

// StdioWriter writes to the host's standard output. One goroutine may write at
// a time; Close may be called from any.
type StdioWriter struct{ p *polled }

// pipeAtom is what a pipe that polls as writable takes without blocking on
// every system: PIPE_BUF on Linux. More could block beyond the reach of a
// context.
const pipeAtom = 4096

// Write writes all of p and waits while nobody reads. It returns how much of p
// was written before an error: the context's when ctx ends first, os.ErrClosed
// after Close, and one that is syscall.EPIPE when the next stage is gone.
func (w *StdioWriter) Write(ctx context.Context, p []byte) (int, error) {
	w.p.use.Lock()
	defer w.p.use.Unlock()
	done := 0
	for done < len(p) {
		if err := w.p.wait(ctx, unix.POLLOUT); err != nil {
			return done, err
		}
		n, err := unix.Write(w.p.fd, p[done:min(len(p), done+pipeAtom)])
		if n > 0 {
			done += n
		}
		if err != nil && !again(err) {
			return done, fmt.Errorf("write standard output: %w", err)
		}
	}
	return done, nil
}

// Close closes the writer's descriptor. It may be called twice.
func (w *StdioWriter) Close() error { return w.p.close() }

// again says that a call is to be made again: interrupted, or nothing there on
// a descriptor that came non-blocking.
func again(err error) bool {
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)
}

// newStdio takes over both descriptors, unless it fails.
func newStdio(in, out int) (*Stdio, error) {
	r, err := newPolled(in)
	if err != nil {
		return nil, err
	}
	w, err := newPolled(out)
	if err != nil {
		r.wakes.close()
		return nil, err
	}
	return &Stdio{In: &StdioReader{p: r}, Out: &StdioWriter{p: w}}, nil
}

// duplicate copies a file's descriptor. It does not use File.Fd, which would
// make a non-blocking description blocking for everybody who shares it.
func duplicate(f *os.File) (int, error) {
	c, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := -1
	var dup error
	if err := c.Control(func(raw uintptr) {
		fd, dup = unix.FcntlInt(raw, unix.F_DUPFD_CLOEXEC, 0)
	}); err != nil {
		return -1, err
	}
	return fd, dup
}
