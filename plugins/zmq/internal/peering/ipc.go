// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/wait"
)

// A socket's file stays behind a process that was killed; it refuses whoever
// dials it. Somebody who listens answers at once.
const (
	probeTimeout = 2 * time.Second
	ipcTries     = 5 // files that come and go while one is opened
	lockTimeout  = 2 * time.Second
	lockStep     = 2 * time.Millisecond
)

// identity is what a file is, whatever its name.
type identity struct{ device, inode uint64 }

// file is the socket's file of an ipc listener.
type file struct {
	path string
	id   identity
}

// listenIPC opens a path. A file that nobody listens on any more is removed, a
// live one is a conflict, and what is no socket is never touched.
func listenIPC(ctx context.Context, a Address) (*listener, *core.Fault) {
	unlock := lockFolder(ctx, filepath.Dir(a.Path))
	defer unlock()
	var err error
	for range ipcTries {
		var l *listener
		if l, err = bindIPC(ctx, a); err == nil {
			return l, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, ipcFault(a, err)
		}
		if f := clearStale(ctx, a); f != nil {
			return nil, f
		}
	}
	return nil, ipcFault(a, err)
}

// lockFolder keeps endpoints apart that open or remove files of one folder at
// one moment: a socket that is bound and does not listen yet looks stale, and the
// number of a file that was removed is soon another's. The lock is the kernel's,
// on the folder itself, and advice: where it is not to be had, as on some network
// file systems, or not in time, the work is done without it.
func lockFolder(ctx context.Context, folder string) (unlock func()) {
	f, err := os.Open(folder)
	if err != nil {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	for err = unix.EWOULDBLOCK; errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != nil && !wait.For(ctx, lockStep) {
			break
		}
	}
	return func() { _ = f.Close() } // which ends the lock
}

// bindIPC makes the socket and its file, and remembers which file that is.
func bindIPC(ctx context.Context, a Address) (*listener, error) {
	network, address := a.system()
	var c net.ListenConfig
	l, err := c.Listen(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // package net would remove it by name, whoever's it is by then
	}
	fi, err := os.Lstat(a.Path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &listener{Listener: l, address: a, file: &file{path: a.Path, id: identify(fi)}}, nil
}

// clearStale removes a file that nobody listens on any more.
func clearStale(ctx context.Context, a Address) *core.Fault {
	before, err := os.Lstat(a.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return ipcFault(a, err)
	case before.Mode().Type() != fs.ModeSocket:
		return inTheWay(a, "a file that is no socket has that name, and is left alone", "move it away, or use another path")
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	nc, err := new(net.Dialer).DialContext(ctx, "unix", a.Path)
	switch {
	case err == nil:
		_ = nc.Close()
		f := inTheWay(a, "another process listens there", "stop it, or use another path")
		f.Transient = true // it may end
		return f
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, os.ErrPermission):
		return ipcFault(a, err)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return inTheWay(a, fmt.Sprintf("a socket is there that does not refuse: %v", bare(err)), "stop the process that holds it, or use another path")
	}
	if err := (&file{path: a.Path, id: identify(before)}).unlink(); err != nil {
		return ipcFault(a, err)
	}
	return nil
}

// remove removes the file of a listener that is still open.
func (f *file) remove() error {
	unlock := lockFolder(context.Background(), filepath.Dir(f.path))
	defer unlock()
	return f.unlink()
}

// unlink removes the file, if its name still stands for it and not for what
// another process has put there.
func (f *file) unlink() error {
	fi, err := os.Lstat(f.path)
	if err == nil && identify(fi) == f.id {
		err = os.Remove(f.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func identify(fi fs.FileInfo) identity {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{device: uint64(st.Dev), inode: st.Ino} //nolint:unconvert // the device is an int32 on macOS
}

// inTheWay is the fault of a path that is taken.
func inTheWay(a Address, reason, fix string) *core.Fault {
	return &core.Fault{
		Code:        core.FaultConflict,
		Message:     fmt.Sprintf("listen on %s: %s", a, reason),
		Diagnostics: []core.Diagnostic{{Path: "bind", Fix: fix}},
	}
}

// ipcFault is the fault of a path that cannot be used.
func ipcFault(a Address, err error) *core.Fault {
	if errors.Is(err, fs.ErrNotExist) {
		folder := filepath.Dir(a.Path)
		return &core.Fault{
			Code:        core.FaultNotFound,
			Message:     fmt.Sprintf("listen on %s: the folder %s does not exist", a, folder),
			Diagnostics: []core.Diagnostic{{Path: "bind", Fix: "create the folder, or use another path"}},
		}
	}
	return listenFault(a, err)
}
