// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// badArchitecture is what only other systems say of a foreign binary.
const badArchitecture = unix.ENOEXEC

// noexec says that a file lies on a file system from which nothing is executed.
func noexec(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Flags&unix.ST_NOEXEC != 0
}

// target is the path to execute. A verified file is executed through its
// descriptor, so that what was verified is what runs, whatever happens to the
// name in between.
func (p *program) target() (path string, err error) {
	if p.file == nil {
		return p.path, nil
	}
	return fmt.Sprintf("/proc/self/fd/%d", p.fd), nil
}
