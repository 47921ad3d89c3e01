// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// fileSystem names the file system of a folder and its device where the system
// lists its mounts in /proc.
func fileSystem(folder string) string {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	name, longest := "", -1
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) < 3 || len(f[1]) < longest {
			continue
		}
		if rest, ok := strings.CutPrefix(folder, strings.TrimSuffix(f[1], "/")); ok && (rest == "" || rest[0] == '/') {
			name, longest = fmt.Sprintf("%s (%s)", f[2], f[0]), len(f[1])
		}
	}
	return name
}

// tick is the unit of times in /proc.
const tick = 10 * time.Millisecond

// cpuOf is what a process has used where the system tells it in /proc, 0
// elsewhere.
func cpuOf(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ") // behind the program's name
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * tick
}
