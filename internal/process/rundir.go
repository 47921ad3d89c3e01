// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/internal/handshake"
)

const (
	// runDirLimit is how long the path of a private directory may be. go-plugin
	// adds 38 bytes, and a socket's path holds 104 on macOS, 108 on Linux.
	runDirLimit = 60

	// staleAfter is how old an unlocked directory must be to be swept. Between
	// making and locking it a host needs far less.
	staleAfter = time.Minute

	// randomDigits is the most that os.MkdirTemp adds to a name.
	randomDigits = 10
)

// runDir is the private directory of one generation. It is locked as long as
// the host that made it lives, and gone once the plugin is connected.
type runDir struct {
	path string
	lock *os.File // the directory itself
}

// roots are the folders for private directories, in order.
func roots() []string {
	var list []string
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.Getenv("TMPDIR"), "/tmp"} {
		if dir != "" && !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return list
}

// newRunDir makes a private directory in the first root that takes one. The
// error names every root and what is wrong with it.
func newRunDir() (*runDir, error) {
	var reasons []error
	for _, root := range roots() {
		d, err := makeRunDir(root)
		if err == nil {
			return d, nil
		}
		reasons = append(reasons, fmt.Errorf("%s: %w", root, err))
	}
	return nil, errors.Join(reasons...)
}

func makeRunDir(root string) (*runDir, error) {
	if !filepath.IsAbs(root) {
		return nil, errors.New("not an absolute path")
	}
	longest := len(root) + len("/") + len(handshake.RunDirPrefix) + randomDigits
	if longest > runDirLimit {
		return nil, fmt.Errorf("too long by %d bytes: with a socket's name it would exceed the system's limit of 107 for socket paths", longest-runDirLimit)
	}
	path, err := os.MkdirTemp(root, handshake.RunDirPrefix)
	if err != nil {
		return nil, errors.New(cause(err))
	}
	d := &runDir{path: path}
	if err := d.take(); err != nil {
		d.remove()
		return nil, errors.New(cause(err))
	}
	return d, nil
}

// take locks the directory and makes sure that it takes a file: on a full file
// system the folder alone may still have had room.
func (d *runDir) take() error {
	lock, err := os.Open(d.path)
	if err != nil {
		return err
	}
	d.lock = lock
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	probe := filepath.Join(d.path, "probe")
	if err := os.WriteFile(probe, []byte{0}, 0o600); err != nil {
		return err
	}
	return os.Remove(probe)
}

// remove removes the directory and then gives up the lock. It may be called
// again.
func (d *runDir) remove() {
	_ = os.RemoveAll(d.path)
	if d.lock != nil {
		_ = d.lock.Close()
		d.lock = nil
	}
}

// holds says whether a socket's path lies in the directory, links resolved.
func (d *runDir) holds(socket string) error {
	if !filepath.IsAbs(socket) {
		return fmt.Errorf("%q is not an absolute path", socket)
	}
	inside, err := filepath.EvalSymlinks(d.path)
	if err != nil {
		return err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(socket))
	if err != nil {
		return err
	}
	if parent != inside && !strings.HasPrefix(parent, inside+"/") {
		return fmt.Errorf("%q lies outside %s", socket, d.path)
	}
	info, err := os.Lstat(socket)
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("%q is no socket", socket)
	}
	return nil
}

// sweep removes what starts of killed hosts left behind: private directories of
// this user that nobody has locked and that are old enough to have been locked.
func sweep(now time.Time) {
	for _, root := range roots() {
		dir, err := os.Open(root)
		if err != nil {
			continue
		}
		for {
			batch, err := dir.Readdirnames(256)
			for _, name := range batch {
				if stale(name) {
					sweepOne(filepath.Join(root, name), now)
				}
			}
			if err != nil {
				break
			}
		}
		_ = dir.Close()
	}
}

// stale says that a name is that of a private directory.
func stale(name string) bool {
	digits, ok := strings.CutPrefix(name, handshake.RunDirPrefix)
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

func sweepOne(path string, now time.Time) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return
	}
	age := now.Sub(time.Unix(st.Mtim.Unix()))
	if int(st.Uid) != os.Getuid() || st.Mode&0o777 != 0o700 || age < staleAfter {
		return
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return // its host lives
	}
	_ = os.RemoveAll(path)
}
