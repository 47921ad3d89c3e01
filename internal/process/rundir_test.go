// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/handshake"
)

// L-07: a folder that cannot hold a socket is passed over, and named when none
// can.
func TestTempFolders(t *testing.T) {
	long := func(n int) string {
		dir := filepath.Join(shortDir(t), strings.Repeat("d", n))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir[:n]
	}
	file := write(t, "file", 0o600, nil)
	tests := []struct{ name, dir, reason string }{
		{"60 characters", long(60), "too long"},
		{"95 characters", long(95), "too long"},
		{"200 characters", long(200), "too long"},
		{"not there", "/nowhere/tmp", "no such file"},
		{"read-only", "/sys", ""},
		{"a file", file, ""},
		{"relative", "tmp", "not an absolute path"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("XDG_RUNTIME_DIR", tt.dir)
			t.Setenv("TMPDIR", tt.dir)
			t.Setenv("HOME", "")
			d, err := newRunDir()
			if err != nil {
				t.Fatal(err)
			}
			defer d.remove()
			if !strings.HasPrefix(d.path, "/tmp/") {
				t.Errorf("made %s", d.path)
			}
			_, err = makeRunDir(tt.dir)
			if err == nil || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("got %v, want %q", err, tt.reason)
			}
			if err != nil && len(leftIn(t, tt.dir)) > 0 {
				t.Error("left behind")
			}
			start(t, mode(t, ""))
		})
	}

	t.Run("order", func(t *testing.T) {
		runtime, temp := shortDir(t), shortDir(t)
		t.Setenv("XDG_RUNTIME_DIR", runtime)
		t.Setenv("TMPDIR", temp)
		for _, want := range []string{runtime, temp, "/tmp"} {
			d, err := newRunDir()
			if err != nil {
				t.Fatal(err)
			}
			if got := filepath.Dir(d.path); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if info, err := os.Stat(d.path); err != nil || info.Mode().Perm() != 0o700 || len(d.path) > runDirLimit {
				t.Errorf("got %v, %v", info, err)
			}
			d.remove()
			if _, err := os.Stat(d.path); !errors.Is(err, os.ErrNotExist) {
				t.Error("it is still there")
			}
			_ = os.RemoveAll(want + "/nothing")
			if want != "/tmp" {
				if err := os.Remove(want); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// L-08, L-11: only what is private, the user's own, unlocked and old is swept;
// what stands in it does not matter, no process is ever looked up by a number.
func TestSweep(t *testing.T) {
	root := privateRoot(t)
	t.Setenv("TMPDIR", root)
	old := time.Now().Add(-2 * staleAfter)
	dir := func(name string, mode os.FileMode, when time.Time) string {
		path := filepath.Join(root, name)
		if err := os.Mkdir(path, mode); err != nil {
			t.Fatal(err)
		}
		// A pid file, as others leave them, of a process that is ours.
		if err := os.WriteFile(filepath.Join(path, "pid"), []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
		return path
	}
	live, err := makeRunDir(root)
	if err != nil {
		t.Fatal(err)
	}
	defer live.remove()
	if err := os.Chtimes(live.path, old, old); err != nil {
		t.Fatal(err)
	}
	stale := dir(handshake.RunDirPrefix+"0123456789", 0o700, old)
	kept := []string{
		live.path,
		dir(handshake.RunDirPrefix+"1", 0o700, time.Now()),
		dir(handshake.RunDirPrefix+"2", 0o755, old),
		dir(handshake.RunDirPrefix+"notes", 0o700, old),
		dir(handshake.RunDirPrefix, 0o700, old),
		dir("longshore", 0o700, old),
	}
	elsewhere := t.TempDir()
	link := filepath.Join(root, handshake.RunDirPrefix+"3")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	kept = append(kept, elsewhere, link)

	sweep(time.Now())
	if _, err := os.Lstat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Error("the stale one is still there")
	}
	for _, path := range kept {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s is gone", path)
		}
	}
}

// The runner takes sockets in its own directory only, links resolved.
func TestAddressesOutside(t *testing.T) {
	root := privateRoot(t)
	d, err := makeRunDir(root)
	if err != nil {
		t.Fatal(err)
	}
	defer d.remove()
	listen := func(path string) string {
		listenUntilEnd(t, path)
		return path
	}
	outside := listen(filepath.Join(root, "outside"))
	inside := listen(filepath.Join(d.path, "inside"))
	linked := filepath.Join(d.path, "linked")
	if err := os.Symlink(outside, linked); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(d.path, "folder")
	if err := os.Symlink(root, folder); err != nil {
		t.Fatal(err)
	}
	if err := d.holds(inside); err != nil {
		t.Error(err)
	}
	for _, path := range []string{
		outside, linked, folder + "/outside", d.path + "/../outside", "relative", "@abstract", "", d.path, d.path + "/nothing",
	} {
		if d.holds(path) == nil {
			t.Errorf("%q is taken", path)
		}
	}
}
