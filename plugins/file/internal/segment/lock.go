// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// LockSuffix is what the name of the lock file has behind the path.
const LockSuffix = ".lock"

// maxLockText bounds what stands in a lock file, maxOwner the owner's part.
const (
	maxLockText = 4096
	maxOwner    = 1024
)

// Lock is held by the one that may write a path. The lock is the kernel's and
// ends with the process that holds it, however it ends; the file only says who
// holds it, and one that a killed process left behind is in nobody's way.
type Lock struct {
	file *os.File
	path string
}

// LockedError says that somebody else holds the lock of a path.
type LockedError struct {
	Path  string
	Owner string // as the holder calls itself, "" where it is not known
	PID   int    // of the holder, 0 where it is not known
}

// Error names the path and the holder.
func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = "process " + strconv.Itoa(e.PID)
	}
	if e.Owner != "" {
		who = e.Owner + " (" + who + ")"
	}
	return fmt.Sprintf("%s is locked by %s: a path has one writer; stop that one or use another path", e.Path, who)
}

// InTheWayError says that a file which nobody of this transport has made has
// the name of one that is needed.
type InTheWayError struct{ Path string }

// Error names the file.
func (e *InTheWayError) Error() string {
	return fmt.Sprintf("%s is somebody else's file, and its name is needed: move it away", e.Path)
}

// AcquireLock locks a path without waiting: by the file path.lock, which says
// the process and owner. The folder must exist. Where the lock is held, in this
// process or another, the error is a *LockedError; where the file is none that
// locks leave behind, an *InTheWayError.
func AcquireLock(path, owner string) (*Lock, error) {
	real, err := Resolve(path)
	if err != nil {
		return nil, err
	}
	for {
		l, err := acquire(real, owner)
		if _, held := errors.AsType[*LockedError](err); held {
			return nil, err // it names the path itself
		}
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if l != nil {
			return l, nil
		}
	}
}

// acquire returns nil and no error where the file was removed while it was
// being locked: by a holder that let go.
func acquire(path, owner string) (*Lock, error) {
	name := path + LockSuffix
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ELOOP) {
		return nil, &InTheWayError{Path: name}
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, cmp.Or(others(path, name), err)
	}
	if err != nil {
		return nil, err
	}
	if err := flock(f, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l := &Lock{file: f, path: name}
	mine, err := l.mine()
	if err != nil || !mine {
		return nil, errors.Join(err, f.Close())
	}
	left, err := isLock(f)
	if err == nil && !left {
		err = &InTheWayError{Path: name}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// One write over what stood there, then the cut: who reads meanwhile
	// finds the number of the process whole.
	owner = owner[:min(len(owner), maxOwner)]
	text := strconv.Itoa(os.Getpid()) + "\n" + strings.ReplaceAll(owner, "\n", " ") + "\n"
	if _, err = f.WriteAt([]byte(text), 0); err == nil {
		err = f.Truncate(int64(len(text)))
	}
	// The text is for people. A disk without room for it is no reason not to
	// lock.
	if err != nil && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// flock locks an open lock file of a path.
func flock(f *os.File, path string) error {
	err := again(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return err
	}
	held := &LockedError{Path: path}
	held.PID, held.Owner = holder(f)
	return held
}

// others returns that somebody holds the lock of a path whose lock file is
// another user's. It is nil where nobody does or that cannot be seen.
func others(path, name string) error {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err == nil {
		err = errors.Join(flock(f, path), f.Close()) // which gives back a lock that was free
	}
	if held, ok := errors.AsType[*LockedError](err); ok {
		return held
	}
	return nil
}

// isLock reports whether a file may be what a lock has left behind: the number
// of a process comes first. It is empty before that is written, and may be zeros
// after the end of the machine.
func isLock(f *os.File) (bool, error) {
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() || fi.Size() > maxLockText {
		return false, err
	}
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxLockText))
	if err != nil || len(bytes.Trim(b, "\x00")) == 0 {
		return err == nil, err
	}
	number, _, _ := bytes.Cut(b, []byte("\n"))
	return len(number) > 0 && len(bytes.Trim(number, "0123456789")) == 0, nil
}

// holder reads who holds a lock, as far as the file says it.
func holder(f *os.File) (pid int, owner string) {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxLockText))
	if err != nil {
		return 0, ""
	}
	first, rest, _ := strings.Cut(string(b), "\n")
	pid, err = strconv.Atoi(first)
	if err != nil {
		return 0, ""
	}
	owner, _, _ = strings.Cut(rest, "\n")
	return pid, owner
}

// mine reports whether the file that is locked still stands at its path.
func (l *Lock) mine() (bool, error) {
	ours, err := Identify(l.file)
	if err != nil {
		return false, err
	}
	there, err := IdentifyPath(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return ours == there, err
}

// Unlock lets go of the lock and removes the file, but never one that somebody
// else has put in its place.
func (l *Lock) Unlock() error {
	mine, err := l.mine()
	if mine {
		err = os.Remove(l.path) // while it is locked: whoever has it open tries again
	}
	if err := errors.Join(err, l.file.Close()); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}
