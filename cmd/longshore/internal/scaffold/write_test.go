// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// names returns what is in a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestWrite(t *testing.T) {
	for _, tt := range []struct {
		name  string
		make  []string // folders that are there
		dir   string
		want  string
		alone bool // beside it nothing is in the working directory
	}{
		{"by default", nil, "", "longshore-transport-x", true},
		{"a new folder", nil, "new", "new", true},
		{"a new folder in new ones", nil, "a/b/new", "a/b/new", true},
		{"an empty folder", []string{"old"}, "old", "old", true},
		{"the working directory", nil, ".", ".", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, dir := range tt.make {
				if err := os.Mkdir(dir, 0o750); err != nil {
					t.Fatal(err)
				}
			}
			files, err := Module{Name: "x", Dir: tt.dir}.Write()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				got, err := os.ReadFile(filepath.Join(tt.want, f.Name))
				if err != nil || string(got) != string(f.Text) {
					t.Errorf("%s: %v, or other bytes", f.Name, err)
				}
			}
			if left := names(t, "."); tt.alone && len(left) != 1 {
				t.Errorf("got %v beside it", left)
			}
			if left := names(t, tt.want); slices.ContainsFunc(left, func(s string) bool { return strings.HasPrefix(s, ".longshore") }) {
				t.Errorf("got %v in it", left)
			}
			if info, err := os.Stat(tt.want); err != nil || tt.make == nil && tt.dir != "." && info.Mode().Perm()&0o050 == 0 {
				t.Errorf("%v: got mode %v, want that of any new folder", err, info.Mode())
			}
		})
	}
}

// A folder that holds something stays as it is.
func TestWriteRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.txt")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ dir, want string }{
		{dir, "it is there and holds mine.txt"}, {file, "it is a file"}, {link, "it is a link to nothing"},
	} {
		_, err := Module{Name: "x", Dir: tt.dir}.Write()
		var wrong *ArgumentError
		if !errors.As(err, &wrong) || wrong.Argument != "--dir" || !strings.Contains(wrong.Reason, tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
	if got := names(t, dir); !slices.Equal(got, []string{"mine.txt"}) {
		t.Errorf("got %v in the folder", got)
	}
}

// What cannot be written is an error of another kind, and leaves nothing.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Module{Name: "x", Dir: filepath.Join(dir, "file", "new")}.Write()
	var wrong *ArgumentError
	if err == nil || errors.As(err, &wrong) {
		t.Errorf("got %v, want the system's own error", err)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

// Somebody else writes into the empty folder at the same time: what has been
// moved so far goes, theirs stays.
func TestMoveAllUndoes(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for _, name := range []string{filepath.Join(from, "a"), filepath.Join(from, "b"), filepath.Join(to, "b")} {
		if err := os.WriteFile(name, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := moveAll(from, to); err == nil {
		t.Error("got no error")
	}
	if got, err := os.ReadFile(filepath.Join(to, "b")); err != nil || string(got) != filepath.Join(to, "b") {
		t.Errorf("got %q, %v in place of their file", got, err)
	}
	if got := names(t, to); !slices.Equal(got, []string{"b"}) {
		t.Errorf("got %v", got)
	}
}
