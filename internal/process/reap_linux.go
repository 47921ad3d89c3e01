// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"

	"golang.org/x/sys/unix"
)

// waitDead waits until process pid, a child of this one, is dead, and leaves
// the dead process in place, so that its number still means it. false: that
// could not be found out, for instance because somebody else waited for it.
func waitDead(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
