// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/longshore-go/longshore/internal/handshake"
)

// descendants returns the children of a process and all of theirs, as far as
// /proc tells; nothing where there is none.
func descendants(pid int) []int {
	children := map[int][]int{}
	entries, _ := os.ReadDir("/proc") // another system has none
	for _, e := range entries {
		if child, err := strconv.Atoi(e.Name()); err == nil {
			if parent, _, ok := procStat(child); ok {
				children[parent] = append(children[parent], child)
			}
		}
	}
	all := slices.Clone(children[pid])
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// zombie reports whether a process has ended and nobody has taken its status.
func zombie(pid int) bool {
	_, state, ok := procStat(pid)
	return ok && (state == 'Z' || state == 'X')
}

// procStat returns the parent and the state of a process (proc(5), stat).
func procStat(pid int) (parent int, state byte, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	// The name in parentheses may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return parent, fields[0][0], err == nil
}

// procReason says why nothing can be said of other processes, "" where /proc
// tells.
func procReason() string {
	if runtime.GOOS != "linux" {
		return "a system whose /proc tells of other processes: this is " + runtime.GOOS
	}
	return ""
}

// family returns the descendants of a process, and those of its generation that
// have left it: the folder of their generation stands in their environment.
func family(pid int) []int {
	all := descendants(pid)
	mark := runDirOf(pid)
	if mark == "" {
		return all
	}
	entries, _ := os.ReadDir("/proc") // another system has none
	for _, e := range entries {
		other, err := strconv.Atoi(e.Name())
		if err == nil && other != pid && !slices.Contains(all, other) && runDirOf(other) == mark {
			all = append(all, other)
		}
	}
	return all
}

// runDirOf is the folder of the generation that a process belongs to, "" where
// its environment is not to be read or names none.
func runDirOf(pid int) string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(text, []byte{0}) {
		if dir, ok := bytes.CutPrefix(entry, []byte(handshake.EnvRunDir+"=")); ok {
			return string(dir)
		}
	}
	return ""
}

// alive reports whether a process is there and has not ended.
func alive(pid int) bool {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) && !zombie(pid)
}

// holding is what a process holds of the system.
type holding struct {
	fds, sockets int
	files        []string // regular files and folders that it has open
	threads      int
	rss          int64 // bytes
	children     []int
}

// held looks at what a process holds. What ends while it looks is left out.
func held(pid int) holding {
	h := holding{children: descendants(pid)}
	base := "/proc/" + strconv.Itoa(pid)
	entries, _ := os.ReadDir(base + "/fd") // it may have ended
	for _, e := range entries {
		to, err := os.Readlink(base + "/fd/" + e.Name())
		if err != nil {
			continue
		}
		h.fds++
		switch {
		case strings.HasPrefix(to, "socket:"):
			h.sockets++
		case strings.HasPrefix(to, "/") && !ofSystem(to):
			h.files = append(h.files, to)
		}
	}
	status, _ := os.ReadFile(base + "/status") // likewise
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		number, _, _ := bytes.Cut(bytes.TrimSpace(value), []byte(" "))
		n, err := strconv.ParseInt(string(number), 10, 64)
		switch {
		case err != nil:
		case string(name) == "Threads":
			h.threads = int(n)
		case string(name) == "VmRSS":
			h.rss = n << 10 // it is in KiB
		}
	}
	return h
}

// nonblocking reports whether a descriptor of a process has O_NONBLOCK set;
// known = /proc tells.
func nonblocking(pid, fd int) (set, known bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return false, false
	}
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte("flags:")); ok {
			flags, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 8, 64)
			return flags&syscall.O_NONBLOCK != 0, err == nil
		}
	}
	return false, false
}

// ofSystem reports whether a path is of devices or of the kernel, which
// runtimes read by themselves.
func ofSystem(path string) bool {
	return strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/sys/")
}
