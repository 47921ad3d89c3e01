// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"runtime"
	"syscall"
)

// attributes puts a command into a process group of its own, and has the kernel
// kill it when the thread that started it ends, which pin prevents for as long
// as this process lives.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// pin keeps the thread alive until the returned function is called.
func pin() (unpin func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
