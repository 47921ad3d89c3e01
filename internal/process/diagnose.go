// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// refused says why the system would not execute a file.
func refused(path string, err error) *fault {
	f := &fault{err: err}
	switch {
	case errors.Is(err, unix.ENOEXEC), errors.Is(err, badArchitecture):
		f.reason, f.fix = format(path)
	case errors.Is(err, unix.EACCES) && noexec(path):
		f.reason = "it lies on a file system that is mounted noexec"
		f.fix = "install it elsewhere, or mount that file system without noexec"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		f.reason = "the system does not permit to execute it"
		f.fix = "look at its permissions and at the system's security policy"
	case errors.Is(err, unix.ENOENT) && examine(path) == nil:
		f.reason = fmt.Sprintf("its interpreter %s is not there", interpreter(path))
		f.fix = "install the interpreter, or a plugin that is built for this system"
	case errors.Is(err, unix.ENOENT):
		f.reason = "it was removed while it was started"
		f.fix = "start again"
	case errors.Is(err, unix.ETXTBSY):
		f.reason = "it is being written"
		f.fix = "start again when its installation is done"
	case errors.Is(err, unix.E2BIG):
		f.reason = "its environment is too large"
		f.fix = "pass on fewer variables"
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM):
		f.reason = "the system has no room for another process: " + err.Error()
		f.fix = "raise the limits on processes and memory"
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		f.reason = "there is no free descriptor"
		f.fix = "raise the limit on open files"
	default:
		f.reason = "the system does not execute it: " + err.Error()
	}
	return f
}

// format says what a file is that the system takes for no program of its own.
func format(path string) (reason, fix string) {
	const rebuild = "install the plugin that is built for this system"
	here := runtime.GOOS + "/" + runtime.GOARCH
	if f, err := elf.Open(path); err == nil {
		defer func() { _ = f.Close() }()
		machine := strings.ToLower(strings.TrimPrefix(f.Machine.String(), "EM_"))
		return fmt.Sprintf("it is an ELF binary for %s (%s), and this is %s", machine, f.Class, here), rebuild
	}
	if f, err := macho.Open(path); err == nil {
		defer func() { _ = f.Close() }()
		return fmt.Sprintf("it is a Mach-O binary for %s, and this is %s", f.Cpu, here), rebuild
	}
	if f, err := macho.OpenFat(path); err == nil {
		defer func() { _ = f.Close() }()
		return fmt.Sprintf("it is a Mach-O binary, and this is %s", here), rebuild
	}
	if f, err := pe.Open(path); err == nil {
		defer func() { _ = f.Close() }()
		return fmt.Sprintf("it is a Windows binary, and this is %s", here), rebuild
	}
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		return "it is empty", "install the plugin again"
	}
	return "it is no program: neither a binary nor a script with a #! line", "give the path of the plugin's binary"
}

// interpreter is what a script or a dynamically linked binary needs.
func interpreter(path string) string {
	const unknown = "(unknown)"
	if f, err := elf.Open(path); err == nil {
		defer func() { _ = f.Close() }()
		for _, p := range f.Progs {
			if p.Type != elf.PT_INTERP {
				continue
			}
			name, err := io.ReadAll(io.LimitReader(p.Open(), unix.PathMax))
			if err == nil {
				return strings.TrimRight(string(name), "\x00")
			}
		}
		return unknown
	}
	f, err := os.Open(path)
	if err != nil {
		return unknown
	}
	defer func() { _ = f.Close() }()
	line, _ := bufio.NewReader(io.LimitReader(f, unix.PathMax)).ReadString('\n')
	line, ok := strings.CutPrefix(line, "#!")
	if fields := strings.Fields(line); ok && len(fields) > 0 {
		return fields[0]
	}
	return unknown
}
