// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// datasync brings a file's bytes, and its length, to disk.
func datasync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
