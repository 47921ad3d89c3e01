// SPDX-License-Identifier: Apache-2.0

package client

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// acknowledge has the system acknowledge now what has been read, and not later.
// It counts once.
func acknowledge(socket syscall.RawConn) {
	_ = socket.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
}
