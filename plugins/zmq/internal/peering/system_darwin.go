// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// maxPath is how many bytes a socket's path may have: 104 with the zero behind.
const maxPath = 103

// pollHungUp are the events of a peer that has closed its connection, or its
// sending half, or lost it.
const pollHungUp = unix.POLLHUP | unix.POLLERR

// peerPID is the process that dialed, 0 = the system does not say.
func peerPID(nc *net.UnixConn) int {
	pid := 0
	err := control(nc, func(fd int) (err error) {
		pid, err = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		return err
	})
	if err != nil {
		return 0
	}
	return pid
}

// unanswered is not known here: the system's own limits hold.
func unanswered(net.Conn) (age time.Duration, outstanding bool) { return 0, false }
