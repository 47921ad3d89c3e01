// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// door is where commands of a shell wait, without looking again and again: a named
// pipe, which nobody can open for reading while nobody has it open for writing.
type door struct {
	t    *testing.T
	path string
	held *os.File // while it is open
}

// newDoor returns one that is shut.
func newDoor(t *testing.T) *door {
	t.Helper()
	d := &door{t: t, path: filepath.Join(t.TempDir(), "door")}
	if err := syscall.Mkfifo(d.path, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.shut)
	return d
}

// wait is the command that ends when the door is open.
func (d *door) wait() string { return ": < " + d.path }

// open lets pass who waits and who comes.
func (d *door) open() {
	d.t.Helper()
	if d.held != nil {
		return
	}
	var err error
	if d.held, err = os.OpenFile(d.path, os.O_RDWR, 0); err != nil { // it need not wait for a reader
		d.t.Fatal(err)
	}
}

// shut lets nobody pass any more.
func (d *door) shut() {
	if d.held != nil {
		_ = d.held.Close()
	}
	d.held = nil
}

// before returns a program that waits at the door, which it opens, and then is the
// one at path.
func (d *door) before(path string) string {
	d.t.Helper()
	script := filepath.Join(d.t.TempDir(), filepath.Base(path))
	writeScript(d.t, script, fmt.Sprintf("%s\nexec %s", d.wait(), path))
	d.open()
	return script
}

// writeScript writes a program. No process is forked meanwhile: it would have the
// file open for writing until it is what it is to be, and nobody could start it.
func writeScript(t *testing.T, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}
