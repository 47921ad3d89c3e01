// SPDX-License-Identifier: Apache-2.0

package card

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	c := From(everything())
	text, err := c.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{"card.json": text, "card.md": c.Markdown()} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("what was there before"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.Write(path); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s holds %d bytes, %v; want the %d of the card", name, len(got), err, len(want))
		}
		if i, err := os.Stat(path); err != nil || i.Mode() != 0o644 {
			t.Errorf("%s has mode %v, %v; want 0644", name, i.Mode(), err)
		}
	}
	only(t, dir, "card.json", "card.md")
}

// A card that cannot be moved into its place leaves nothing behind.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "card.md")
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := put(path, []byte("text")); err == nil {
		t.Error("a folder was overwritten")
	}
	only(t, dir, "card.md")
}

// only checks that a folder holds what it should.
func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file.md")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(dir, "fifo.md")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ path, want string }{
		"new":             {filepath.Join(dir, "card.json"), ""},
		"overwritten":     {file, ""},
		"other form":      {filepath.Join(dir, "card.txt"), "end it with .json or .md"},
		"standard output": {"/dev/stdout", "end it with .json or .md"},
		"no folder":       {filepath.Join(dir, "none", "card.md"), "there is no folder " + filepath.Join(dir, "none")},
		"file as folder":  {filepath.Join(file, "card.md"), "file.md is no folder; name another"},
		"pipe":            {fifo, "something that is no file is there"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(tt.path)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to say %q", err, tt.want)
			}
		})
	}
	only(t, dir, "fifo.md", "file.md")
}
