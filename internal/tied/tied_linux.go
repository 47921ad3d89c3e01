// SPDX-License-Identifier: Apache-2.0

package tied

import (
	"runtime"
	"syscall"
)

// Attributes puts a command into a process group of its own, and has the kernel
// kill it when the thread that started it ends, which Pin prevents for as long
// as this process lives.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// Pin keeps the thread alive until the returned function is called: the
// parent-death signal follows the thread that started a process, not the
// process.
func Pin() (unpin func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
