// SPDX-License-Identifier: Apache-2.0

package programtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// small is a program with little in it.
const small = "github.com/longshore-go/longshore/internal/mosquitto/longshore-mqtt-outside"

// What is up to date is not linked again; what is not of these sources, as after
// a change of them, is.
func TestPath(t *testing.T) {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(out))) // which would follow the next one
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	path := Path(t, small)
	first := stat(t, path)
	if filepath.Base(path) != "longshore-mqtt-outside" || first.Mode()&0o100 == 0 {
		t.Fatalf("got %s %v, want a program", path, first.Mode())
	}
	again := func() os.FileInfo {
		t.Helper()
		if _, err := build(small); err != nil {
			t.Fatal(err)
		}
		return stat(t, path)
	}
	if !os.SameFile(first, again()) {
		t.Error("it is linked again")
	}
	linked := filepath.Join(filepath.Dir(path), "linked", filepath.Base(path))
	old, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(linked); err != nil {
		t.Fatal(err)
	}
	if err := put(old, linked); err != nil {
		t.Fatal(err)
	}
	stale := stat(t, linked)
	if now := again(); os.SameFile(stale, now) || now.Size() != first.Size() {
		t.Errorf("got %d bytes, want %d of a program that is linked anew", now.Size(), first.Size())
	}
	folder := t.TempDir()
	if err := Folder(folder, "./internal/mosquitto/longshore-mqtt-outside"); err != nil {
		t.Fatal(err)
	}
	if got := stat(t, filepath.Join(folder, "longshore-mqtt-outside")); got.Size() != first.Size() {
		t.Errorf("got %d bytes in the folder, want %d", got.Size(), first.Size())
	}
}

// What cannot be built is told with what the go command says.
func TestFolderRefused(t *testing.T) {
	err := Folder(t.TempDir(), "./internal/nowhere")
	if err == nil || !strings.Contains(err.Error(), "build [./internal/nowhere]: ") || !strings.Contains(err.Error(), "directory not found") {
		t.Errorf("got %v, want what the go command says", err)
	}
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
