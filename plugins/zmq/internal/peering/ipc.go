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
	"strconv"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/core"
)

// A socket's file stays behind a process that was killed; it refuses whoever
// dials it. Somebody who listens answers at once.
const (
	probeTimeout = 2 * time.Second
	ipcTries     = 5 // files that come and go while one is opened
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
	var err error
	for range ipcTries {
		var l *listener
		if l, err = bindIPC(ctx, a); err == nil {
			return l, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, ipcFault(a, err)
		}
		if f := clear(ctx, a); f != nil {
			return nil, f
		}
	}
	return nil, ipcFault(a, err)
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

// clear removes a file that nobody listens on any more.
func clear(ctx context.Context, a Address) *core.Fault {
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
		return inTheWay(a, "another process listens there", "stop it, or use another path")
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, os.ErrPermission):
		return ipcFault(a, err)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return inTheWay(a, fmt.Sprintf("a socket is there that does not refuse: %v", bare(err)), "stop the process that holds it, or use another path")
	}
	// A file that has the same name by now was made later.
	if now, err := os.Lstat(a.Path); err != nil || !now.ModTime().Equal(before.ModTime()) {
		return nil
	}
	if err := (&file{path: a.Path, id: identify(before)}).remove(); err != nil {
		return ipcFault(a, err)
	}
	return nil
}

// remove removes the file, if its name still stands for it and not for what
// another process has put there. Two processes may do so at the same moment, so
// the file is taken aside first, and put back if it turns out to be another.
func (f *file) remove() error {
	if ours, err := f.at(f.path); !ours {
		return err
	}
	aside := filepath.Join(filepath.Dir(f.path), "."+strconv.Itoa(os.Getpid())+"-"+strconv.FormatUint(f.id.inode, 36))
	if err := os.Rename(f.path, aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if ours, err := f.at(aside); !ours {
		return errors.Join(err, putBack(aside, f.path))
	}
	return os.Remove(aside)
}

// putBack gives a file its name back, unless that has been taken.
func putBack(aside, path string) error {
	err := os.Link(aside, path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return os.Rename(aside, path)
	}
	return os.Remove(aside)
}

// at reports whether the file is the one with a name.
func (f *file) at(path string) (bool, error) {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && identify(fi) == f.id, err
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
