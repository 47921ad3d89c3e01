// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
