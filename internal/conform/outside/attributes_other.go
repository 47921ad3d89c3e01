// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package outside

import "syscall"

// attributes puts a command into a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// pin does nothing: there is no parent-death signal here.
func pin() (unpin func()) { return func() {} }
