// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asNobody calls f as a user to whom files are closed that others cannot write.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f() // the file's mode is enough
		return
	}
	const nobody = 65534
	done := make(chan struct{})
	go func() { // the thread ends with the goroutine, which keeps the user for itself
		defer close(done)
		runtime.LockOSThread()
		if err := unix.Setfsuid(nobody); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}

// The lock file of another user can be read, as a rule, and says who writes.
func TestAnotherUsersLockIsRefusedByName(t *testing.T) {
	dir := folder(t)
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil { //nolint:gosec // another user is to get there
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "orders.ss")
	l := lock(t, path, "endpoint theirs")
	if err := os.Chmod(path+LockSuffix, 0o444); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		_, err := AcquireLock(path, "endpoint mine")
		var held *LockedError
		if !errors.As(err, &held) || held.Owner != "endpoint theirs" || held.PID != os.Getpid() {
			t.Errorf("got %v", err)
		}
	})
	if err := os.Chmod(path+LockSuffix, 0); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		if _, err := AcquireLock(path, ""); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("cannot be read: got %v", err)
		}
	})
	unlock(t, l)
	if err := os.WriteFile(path+LockSuffix, []byte("1\nendpoint gone\n"), 0o444); err != nil { //nolint:gosec // another user is to read it
		t.Fatal(err)
	}
	asNobody(t, func() {
		if _, err := AcquireLock(path, ""); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("not held: got %v", err)
		}
	})
}
