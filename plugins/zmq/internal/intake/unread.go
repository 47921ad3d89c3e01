// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// unread is how many bytes the operating system has received and not handed
// over, as far as it says so.
func unread(nc net.Conn) int64 {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	err = raw.Control(func(fd uintptr) {
		if n, err = unix.IoctlGetInt(int(fd), fionread); err != nil {
			n = 0
		}
	})
	if err != nil {
		return 0
	}
	return int64(n)
}
