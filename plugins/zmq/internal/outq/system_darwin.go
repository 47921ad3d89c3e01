// SPDX-License-Identifier: Apache-2.0

package outq

import "golang.org/x/sys/unix"

// unacknowledged is how many bytes that were written the other side has not got,
// 0 where the system does not say.
func unacknowledged(fd int) int {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NWRITE)
	if err != nil {
		return 0
	}
	return n
}
