// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// child is a process that was started here and is reaped here.
type child struct {
	pid   int
	group bool // it leads a process group of its own

	mu     sync.Mutex
	killed bool // by kill, while it was not reaped
	reaped bool // its number may mean somebody else
	exit   Exit

	done chan struct{} // closed when it is reaped
}

// pipes are the host's ends of a child's first three descriptors.
type pipes struct {
	leash  *os.File // its stdin; closing it says that the host is gone
	stdout *os.File
	stderr *os.File
}

func (p *pipes) close() {
	for _, f := range []*os.File{p.leash, p.stdout, p.stderr} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// spawn executes a program. With stdio the child gets it as descriptors 3 and 4
// and stays in the host's process group: in a group of its own a background
// reader of the host's terminal would be stopped for ever.
func spawn(p *program, env []string, stdio *Stdio) (*child, *pipes, error) {
	files, ours, theirs, err := descriptors(stdio)
	defer theirs.close()
	if err != nil {
		ours.close()
		return nil, nil, err
	}
	path, err := p.target()
	if err != nil {
		ours.close()
		return nil, nil, err
	}
	if p.file != nil && p.script() {
		// The interpreter opens the descriptor again.
		for len(files) < p.fd {
			files = append(files, ^uintptr(0)) // closed
		}
		files = append(files, uintptr(p.fd))
	}
	attr := &syscall.ProcAttr{Env: env, Files: files, Sys: &syscall.SysProcAttr{Setpgid: stdio == nil}}
	pid, err := execute(path, p.path, attr)
	if err != nil {
		ours.close()
		return nil, nil, err
	}
	c := &child{pid: pid, group: stdio == nil, done: make(chan struct{})}
	go c.reap()
	return c, ours, nil
}

// execute forks and executes. A file that was just installed may still be open
// for writing in a process forked at that moment, so "text file busy" is tried
// again for a short time.
func execute(path, name string, attr *syscall.ProcAttr) (int, error) {
	const tries, pause = 10, 20 * time.Millisecond
	for try := 1; ; try++ {
		pid, err := syscall.ForkExec(path, []string{name}, attr)
		if err == nil || try == tries || !errors.Is(err, unix.ETXTBSY) {
			return pid, err
		}
		time.Sleep(pause)
	}
}

// fds are descriptors to close after the fork.
type fds []int

func (l fds) close() {
	for _, fd := range l {
		_ = unix.Close(fd)
	}
}

// descriptors makes the pipes of a child: the list that it gets, the host's
// ends, and what the host has to close once it has forked.
func descriptors(stdio *Stdio) (files []uintptr, ours *pipes, theirs fds, err error) {
	ours = &pipes{}
	give := func(f *os.File) error {
		fd, err := duplicate(f)
		if err == nil {
			files = append(files, uintptr(fd))
			theirs = append(theirs, fd)
		}
		return err
	}
	in, leash, err := os.Pipe()
	if err != nil {
		return nil, ours, theirs, err
	}
	defer func() { _ = in.Close() }()
	ours.leash = leash
	stdout, out, err := os.Pipe()
	if err != nil {
		return nil, ours, theirs, err
	}
	defer func() { _ = out.Close() }()
	ours.stdout = stdout
	stderr, errs, err := os.Pipe()
	if err != nil {
		return nil, ours, theirs, err
	}
	defer func() { _ = errs.Close() }()
	ours.stderr = stderr

	for _, f := range []*os.File{in, out, errs} {
		_ = f.Fd() // blocking: a child expects it of its first three
		if err := give(f); err != nil {
			return nil, ours, theirs, err
		}
	}
	if stdio != nil {
		if err := errors.Join(give(stdio.In), give(stdio.Out)); err != nil {
			return nil, ours, theirs, err
		}
	}
	return files, ours, theirs, nil
}

// duplicate copies a descriptor without File.Fd, which makes a non-blocking
// description blocking for everybody who shares it.
func duplicate(f *os.File) (int, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := -1
	var dup error
	err = conn.Control(func(raw uintptr) {
		fd, dup = unix.FcntlInt(raw, unix.F_DUPFD_CLOEXEC, firstFree)
	})
	return fd, errors.Join(err, dup)
}

// reap waits for the death, ends what the process left in its group while its
// number still is its own, and collects its status.
func (c *child) reap() {
	defer close(c.done)
	if !waitDead(c.pid) {
		// It may live, so kill must stay possible while this blocks.
		exit := collect(c.pid)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.exit, c.reaped = exit, true
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.group {
		_ = unix.Kill(-c.pid, unix.SIGKILL)
	}
	c.exit, c.reaped = collect(c.pid), true
}

// collect waits for a child and takes its status.
func collect(pid int) Exit {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // somebody else has waited for it
			return Exit{Code: -1}
		case status.Signaled():
			return Exit{Code: -1, Signal: status.Signal()}
		default:
			return Exit{Code: status.ExitStatus()}
		}
	}
}

// kill kills the group, or the process where the group is the host's. It does
// nothing once the process is reaped.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	c.killed = true
	if c.group {
		_ = unix.Kill(-c.pid, unix.SIGKILL)
	} else {
		_ = unix.Kill(c.pid, unix.SIGKILL)
	}
}

// byItself says that the process is dead, and not because of kill.
func (c *child) byItself() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reaped && (!c.killed || c.exit.Signal != unix.SIGKILL)
}

// result is how the process ended; valid once done is closed.
func (c *child) result() Exit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exit
}
