// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

func write(t *testing.T, name string, b []byte) Segment {
	t.Helper()
	path := filepath.Join(folder(t), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return Segment{Number: 1, Path: path, Active: true}
}

func TestOpenReadsTheHeader(t *testing.T) {
	h := format.Header{Name: "orders.ss", Created: 1700000000000, Interval: format.DefaultInterval}
	s := write(t, "orders.ss", h.Append(nil))
	id, err := IdentifyPath(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(Segment) (*File, error){"Open": Open, "OpenWritable": OpenWritable} {
		f, err := open(s)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(h, f.Header); d != "" {
			t.Errorf("%s: header (-want +got)\n%s", name, d)
		}
		if f.Segment != s || f.ID != id {
			t.Errorf("%s: got %v with %v, want %v with %v", name, f.Segment, f.ID, s, id)
		}
		_, err = f.Write([]byte("x"))
		if wrote := err == nil; wrote != (name == "OpenWritable") {
			t.Errorf("%s: wrote: %v, %v", name, wrote, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenRefusesOtherFiles(t *testing.T) {
	good := format.Header{Name: "orders.ss", Created: 1, Interval: 1024}.Append(nil)
	changed := func(at int, b byte) []byte {
		c := append([]byte(nil), good...)
		c[at] = b
		return c
	}
	tests := []struct {
		name  string
		bytes []byte
		short bool
	}{
		{"empty", nil, true},
		{"cut header", good[:127], true},
		{"a text", []byte(strings.Repeat("hello\n", 100)), false},
		{"another version", changed(2, 2), false},
		{"no terminator", changed(127, 0), false},
		{"interval", changed(3+1+9+8+3, 1), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := write(t, "orders.ss", tt.bytes)
			_, err := Open(s)
			var kind *KindError
			if !errors.As(err, &kind) {
				t.Fatalf("got %v", err)
			}
			if kind.Path != s.Path || kind.Reason == "" || kind.Short != tt.short {
				t.Errorf("got %+v", kind)
			}
			var header *format.HeaderError
			if !errors.As(err, &header) || kind.Offset != int64(header.Offset) {
				t.Errorf("got %v", err)
			}
			text := err.Error()
			if want := s.Path + " is not a stream file (.ss): its header, at offset "; !strings.HasPrefix(text, want) || strings.Count(text, "stream file") != 1 {
				t.Errorf("got %q, want %q once", text, want)
			}
		})
	}
}

func TestOpenRefusesWhatIsNoRegularFile(t *testing.T) {
	dir := folder(t)
	fifo := filepath.Join(dir, "fifo.ss")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, fifo, os.DevNull} {
		_, err := Open(Segment{Path: path})
		var kind *KindError
		if !errors.As(err, &kind) || kind.Path != path {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if _, err := Open(Segment{Path: filepath.Join(dir, "missing.ss")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: got %v", err)
	}
	if _, err := IdentifyPath(filepath.Join(dir, "missing.ss")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: got %v", err)
	}
}
