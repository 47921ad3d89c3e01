// SPDX-License-Identifier: Apache-2.0

package client

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// acknowledge has the system acknowledge now what has been read, and not later.
// It counts once.
func acknowledge(socket syscall.RawConn) {
	_ = socket.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
}

// limitUnanswered has the system give a connection up whose other end has
// acknowledged nothing for that long, while there is something to be acknowledged.
func limitUnanswered(socket syscall.RawConn, limit time.Duration) {
	_ = socket.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit/time.Millisecond))
	})
}
