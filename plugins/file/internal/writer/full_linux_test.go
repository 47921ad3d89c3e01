// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// fullDisk narrows by a small file system. Where that may not be mounted, the
// length of files is limited instead.
func fullDisk(t *testing.T) narrow {
	t.Helper()
	dir := folder(t)
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=512k")
	if errors.Is(err, unix.EPERM) {
		t.Log("no file system may be mounted here: the length of files is limited instead")
		return longestFile(t, 200<<10)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	writeFile(t, ballast, make([]byte, 300<<10))
	return narrow{dir: dir, cause: unix.ENOSPC, makeRoom: func() { _ = os.Remove(ballast) }}
}
