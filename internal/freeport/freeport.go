// SPDX-License-Identifier: Apache-2.0

// Package freeport finds ports for tests whose servers are started later than
// their port has to be known, or are away for a while.
package freeport

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// Hold returns a TCP port of 127.0.0.1 that is the test's until its end: the
// system gives it to nobody, neither to who listens anywhere nor to who dials. A
// server that lets addresses be used again, which is the default of Go, Java and
// libzmq, may listen on it.
func Hold(tb testing.TB) int {
	tb.Helper()
	port, release, err := Reserve()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = release() })
	return port
}

// Reserve is Hold until release is called.
func Reserve() (port int, release func() error, err error) {
	// A socket that is bound and does not listen has its port for itself. That others
	// may use it is said when it is bound: else it could be bound to one of theirs.
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("hold a port: %w", os.NewSyscallError("socket", err))
	}
	syscall.CloseOnExec(s)
	release = func() error { return syscall.Close(s) }
	if port, err = bind(s); err != nil {
		return 0, nil, fmt.Errorf("hold a port: %w", errors.Join(err, release()))
	}
	return port, release, nil
}

// bind binds a socket to a port that nobody has.
func bind(s int) (port int, err error) {
	if err := syscall.Bind(s, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	if err := syscall.SetsockoptInt(s, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	at, err := syscall.Getsockname(s)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	return at.(*syscall.SockaddrInet4).Port, nil
}
