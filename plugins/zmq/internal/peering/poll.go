// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// pollReadable are bytes, or the end of a connection, that were not read.
const pollReadable = unix.POLLIN | pollHungUp

// poll asks the system, without waiting, which of some events a connection has.
func poll(nc net.Conn, events int16) (int16, error) {
	var got int16
	err := control(nc, func(fd int) error {
		for {
			fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
			if _, err := unix.Poll(fds, 0); !errors.Is(err, unix.EINTR) {
				got = fds[0].Revents
				return err
			}
		}
	})
	return got, err
}

// control runs f with a connection's descriptor. A connection that is closed has
// none.
func control(nc net.Conn, f func(fd int) error) error {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return errors.ErrUnsupported
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}
