// SPDX-License-Identifier: Apache-2.0

package client

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// acknowledge does nothing: this system does not offer it.
func acknowledge(syscall.RawConn) {}

// limitUnanswered has the system give a connection up whose other end has
// acknowledged nothing for that long, while there is something to be acknowledged.
func limitUnanswered(socket syscall.RawConn, limit time.Duration) {
	_ = socket.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_RXT_CONNDROPTIME, int(limit/time.Second))
	})
}
