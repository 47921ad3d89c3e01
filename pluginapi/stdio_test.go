// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// rawPipe is a pipe whose descriptors Go's poller does not know, blocking or
// not, as a shell hands them over.
func rawPipe(t *testing.T, nonblock bool) (r, w int) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe(fds[:]); err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if err := unix.SetNonblock(fd, nonblock); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = unix.Close(fds[0])
		_ = unix.Close(fds[1])
	})
	return fds[0], fds[1]
}

// stdioOn returns Stdio over duplicates, as NewStdio does for files.
func stdioOn(t *testing.T, in, out int) *Stdio {
	t.Helper()
	dup := func(fd int) int {
		d, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	s, err := newStdio(dup(in), dup(out))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func flags(t *testing.T, fd int) int {
	t.Helper()
	f, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// bothWays runs a test on descriptors that came blocking and non-blocking, and
// checks that they leave as they came (TG-19).
func bothWays(t *testing.T, test func(t *testing.T, in, out int)) {
	for name, nonblock := range map[string]bool{"blocking": false, "non-blocking": true} {
		t.Run(name, func(t *testing.T) {
			in, out := rawPipe(t, nonblock)
			before := [2]int{flags(t, in), flags(t, out)}
			test(t, in, out)
			if after := [2]int{flags(t, in), flags(t, out)}; after != before {
				t.Errorf("flags: got %#x, want %#x", after, before)
			}
		})
	}
}

func TestStdioReads(t *testing.T) {
	bothWays(t, func(t *testing.T, in, out int) {
		s := stdioOn(t, in, out)
		buf := make([]byte, 100)
		if _, err := unix.Write(out, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if n, err := s.In.Read(t.Context(), buf); err != nil || string(buf[:n]) != "hello" {
			t.Errorf("got %q, %v", buf[:n], err)
		}
		if n, err := s.In.Read(t.Context(), nil); n != 0 || err != nil {
			t.Errorf("into nothing: got %d, %v", n, err)
		}
		time.AfterFunc(20*time.Millisecond, func() { _, _ = unix.Write(out, []byte("later")) })
		if n, err := s.In.Read(t.Context(), buf); err != nil || string(buf[:n]) != "later" {
			t.Errorf("got %q, %v", buf[:n], err)
		}
	})
}

func TestStdioReadIsCut(t *testing.T) {
	bothWays(t, func(t *testing.T, in, out int) {
		s := stdioOn(t, in, out)
		buf := make([]byte, 100)
		for range 100 { // whether the cut comes before, during or after the wait
			ctx, cancel := context.WithCancel(t.Context())
			go cancel()
			if _, err := s.In.Read(ctx, buf); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
		}
		if _, err := unix.Write(out, []byte("kept")); err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if n, err := s.In.Read(ended, buf); n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: got %d, %v", n, err)
		}
		if n, err := s.In.Read(t.Context(), buf); err != nil || string(buf[:n]) != "kept" {
			t.Errorf("got %q, %v", buf[:n], err)
		}
	})
}

func TestStdioReadIsClosed(t *testing.T) {
	bothWays(t, func(t *testing.T, in, out int) {
		s := stdioOn(t, in, out)
		time.AfterFunc(20*time.Millisecond, func() { _ = s.Close() })
		if _, err := s.In.Read(t.Context(), make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := s.Out.Write(t.Context(), []byte("x")); !errors.Is(err, os.ErrClosed) {
			t.Errorf("a write afterwards: got %v", err)
		}
	})
}

func TestStdioEndOfInput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	s, err := NewStdio(r, null)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := w.WriteString("last"); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	buf := make([]byte, 100)
	if n, err := s.In.Read(t.Context(), buf); err != nil || string(buf[:n]) != "last" {
		t.Errorf("got %q, %v", buf[:n], err)
	}
	for range 2 {
		if _, err := s.In.Read(t.Context(), buf); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want the end", err)
		}
	}
	if n, err := s.Out.Write(t.Context(), []byte("away")); n != 4 || err != nil {
		t.Errorf("to the null device: got %d, %v", n, err)
	}
}

// A write larger than the pipe waits for its reader and loses nothing.
func TestStdioWritesAll(t *testing.T) {
	bothWays(t, func(t *testing.T, in, out int) {
		s := stdioOn(t, in, out)
		want := []byte(strings.Repeat("0123456789abcdef", 64<<10)) // 1 MiB
		var got bytes.Buffer
		done := make(chan error, 1)
		go func() {
			buf := make([]byte, 10_000)
			for got.Len() < len(want) {
				n, err := s.In.Read(context.Background(), buf)
				if err != nil {
					done <- err
					return
				}
				got.Write(buf[:n])
			}
			done <- nil
		}()
		if n, err := s.Out.Write(t.Context(), want); n != len(want) || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Error("what was read is not what was written")
		}
	})
}

// A write that nobody reads is cut, and says how much left.
func TestStdioWriteIsCut(t *testing.T) {
	bothWays(t, func(t *testing.T, in, out int) {
		s := stdioOn(t, in, out)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		n, err := s.Out.Write(ctx, make([]byte, 1<<20))
		if !errors.Is(err, context.DeadlineExceeded) || n == 0 || n >= 1<<20 {
			t.Fatalf("got %d, %v", n, err)
		}
		read := 0
		buf := make([]byte, 64<<10)
		for read < n {
			m, err := s.In.Read(t.Context(), buf)
			if err != nil {
				t.Fatal(err)
			}
			read += m
		}
		if read != n {
			t.Errorf("read %d, want %d", read, n)
		}
	})
}

func TestStdioNextStageIsGone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s, err := NewStdio(r, w)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_ = r.Close()
	if err := s.In.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Out.Write(t.Context(), []byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v, want EPIPE", err)
	}
}

func TestStdioOnFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(path + ".out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s, err := NewStdio(in, out)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	buf := make([]byte, 100)
	n, err := s.In.Read(t.Context(), buf)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Out.Write(t.Context(), buf[:n]); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path + ".out"); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := s.In.Read(t.Context(), buf); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end", err)
	}
}

func TestNewStdioOfClosedFiles(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if _, err := NewStdio(f, f); err == nil {
		t.Error("a closed file is taken")
	}
	if _, err := NewStdio(nil, nil); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// A private directory is removed even while something is made in it; nothing
// else is.
func TestRemoveRunDir(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "longshore-run-1")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				_ = os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)
			}
		}
	}()
	removeRunDir(dir)
	close(stop)
	<-stopped
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("it is still there")
	}
	for _, path := range []string{"", "longshore-run-1", root} {
		removeRunDir(path)
	}
	if _, err := os.Lstat(root); err != nil {
		t.Error("another directory was removed")
	}
}
