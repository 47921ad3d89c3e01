// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"

	"golang.org/x/sys/unix"
)

// waitDead waits until process pid, a child of this one, is dead, and leaves
// the dead process in place, so that its number still means it. false: that
// could not be found out.
func waitDead(pid int) bool {
	queue, err := unix.Kqueue()
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(queue) }()
	unix.CloseOnExec(queue)
	watch := []unix.Kevent_t{{
		Ident: uint64(pid), Filter: unix.EVFILT_PROC,
		Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT,
	}}
	events := make([]unix.Kevent_t, 1)
	for {
		n, err := unix.Kevent(queue, watch, events, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ESRCH): // dead before it was watched
			return true
		default:
			return err == nil && n > 0
		}
	}
}
