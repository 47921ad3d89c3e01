// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// maxPath is how many bytes a socket's path may have: 108 with the zero behind.
const maxPath = 107

// pollHungUp are the events of a peer that has closed its connection, or its
// sending half, or lost it.
const pollHungUp = unix.POLLRDHUP | unix.POLLHUP | unix.POLLERR

// peerPID is the process that dialed, 0 = the system does not say.
func peerPID(nc *net.UnixConn) int {
	pid := 0
	err := control(nc, func(fd int) error {
		c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			pid = int(c.Pid)
		}
		return err
	})
	if err != nil {
		return 0
	}
	return pid
}

// unanswered is for how long the other machine has acknowledged nothing, if
// something that it has room for is on its way there. A peer that does not read
// has no room: then the system's own probes decide.
func unanswered(nc net.Conn) (age time.Duration, outstanding bool) {
	if _, ok := nc.(*net.TCPConn); !ok {
		return 0, false
	}
	err := control(nc, func(fd int) error {
		i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			age = time.Duration(i.Last_ack_recv) * time.Millisecond
			outstanding = i.Unacked > 0 && i.Snd_wnd > 0
		}
		return err
	})
	return age, outstanding && err == nil
}
