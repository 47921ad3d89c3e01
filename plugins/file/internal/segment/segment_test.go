// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/leaktest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childPath) != "" {
		holdLock()
		return
	}
	leaktest.Main(m)
}

// folder is a test's folder under the one name that it has.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func touch(t *testing.T, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestListTellsRotatedFilesFromOthers(t *testing.T) {
	dir := folder(t)
	for _, name := range []string{
		"orders.ss", "orders.000001.ss", "orders.000010.ss", "orders.000002.ss", "orders.1234567.ss",
		"orders.00003.ss", "orders.0000003.ss", "orders.000000.ss", "orders.00000x.ss", "orders.+00004.ss", "orders.-00004.ss",
		"orders.000004.ss.lock", "orders.ss.lock", "orders.ss.keys", "orders.000005", "other.000001.ss", "orders000001.ss",
		"orders.99999999999999999999.ss",
	} {
		touch(t, filepath.Join(dir, name))
	}
	if err := os.Mkdir(filepath.Join(dir, "orders.000006.ss"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := List(filepath.Join(dir, "orders.ss"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Segment{
		{Number: 1, Path: filepath.Join(dir, "orders.000001.ss")},
		{Number: 2, Path: filepath.Join(dir, "orders.000002.ss")},
		{Number: 10, Path: filepath.Join(dir, "orders.000010.ss")},
		{Number: 1234567, Path: filepath.Join(dir, "orders.1234567.ss")},
		{Number: 1234568, Path: filepath.Join(dir, "orders.ss"), Active: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for _, s := range want[:4] {
		if got := Rotated(filepath.Join(dir, "orders.ss"), s.Number); got != s.Path {
			t.Errorf("rotated file %d: got %s, want %s", s.Number, got, s.Path)
		}
	}
}

func TestListWithoutExtensionOrActiveFile(t *testing.T) {
	dir := folder(t)
	touch(t, filepath.Join(dir, "orders.000001"), filepath.Join(dir, "orders.000001.ss"))
	got, err := List(filepath.Join(dir, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Segment{{Number: 1, Path: filepath.Join(dir, "orders.000001")}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if got, err := List(filepath.Join(dir, "none.ss")); err != nil || len(got) != 0 {
		t.Errorf("no file at all: got %v, %v", got, err)
	}
	if _, err := List(filepath.Join(dir, "missing", "orders.ss")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: got %v", err)
	}
}

func TestLinksLeadToOneName(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "real", "orders.ss")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"folder": "real", "file.ss": path, "dangling.ss": filepath.Join(dir, "real", "none.ss")} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Resolve(filepath.Join(dir, "folder", "orders.ss")); err != nil || got != path {
		t.Errorf("before the file exists: got %s, %v", got, err)
	}
	touch(t, path, Rotated(path, 1))
	for _, name := range []string{"folder/orders.ss", "file.ss", "real/../real/orders.ss"} {
		if got, err := Resolve(filepath.Join(dir, name)); err != nil || got != path {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, path)
		}
		got, err := List(filepath.Join(dir, name))
		if err != nil || len(got) != 2 || got[0].Path != Rotated(path, 1) || got[1].Path != path {
			t.Errorf("%s: list is %v, %v", name, got, err)
		}
	}
	if _, err := Resolve(filepath.Join(dir, "dangling.ss")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("link to nothing: got %v", err)
	}
	t.Chdir(dir)
	if got, err := Resolve("real/orders.ss"); err != nil || got != path {
		t.Errorf("relative: got %s, %v", got, err)
	}
}
