// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package tied

import "syscall"

// Attributes puts a command into a process group of its own.
func Attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// Pin does nothing: there is no parent-death signal here.
func Pin() (unpin func()) { return func() {} }
