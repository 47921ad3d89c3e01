// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cpuOf is what a process has used, user and system, where the system tells it,
// 0 elsewhere.
func cpuOf(pid int) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clockOf(pid), &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// clockOf is Linux's clock of a process's CPU time, as clock_getcpuclockid(3)
// makes it of the process's id.
func clockOf(pid int) int32 { return int32(^pid<<3 | 2) }

// statusBytes is a size of a process that the system tells in /proc under a
// name, 0 where it does not.
func statusBytes(pid int, name string) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}
