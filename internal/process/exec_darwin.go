// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// badArchitecture is what this system says of a binary for another machine.
const badArchitecture = unix.EBADARCH

// noexec says that a file lies on a file system from which nothing is executed.
func noexec(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Flags&unix.MNT_NOEXEC != 0
}

// target is the path to execute. This system executes no descriptor, so the
// name must still lead to the file that was verified.
func (p *program) target() (path string, err error) {
	if p.file == nil {
		return p.path, nil
	}
	verified, err := p.file.Stat()
	if err != nil {
		return "", err
	}
	now, err := os.Stat(p.path)
	if err != nil {
		return "", err
	}
	if !os.SameFile(verified, now) {
		return "", fmt.Errorf("the file was replaced after its checksum was verified")
	}
	return p.path, nil
}
