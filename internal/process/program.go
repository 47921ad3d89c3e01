// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// fault is what is wrong with a file.
type fault struct {
	reason string
	fix    string
	err    error
}

// program is a file that passed all checks.
type program struct {
	path string
	file *os.File // open where its checksum was verified, else nil
	fd   int      // of file, beyond the descriptors of any plugin
}

// checksumForm begins every checksum; another form can come beside it.
const checksumForm = "sha256:"

// openProgram checks a file, and its content where checksum is not "".
func openProgram(path, checksum string) (*program, *fault) {
	if bad := examine(path); bad != nil {
		return nil, bad
	}
	if checksum == "" {
		return &program{path: path, fd: -1}, nil
	}
	digits, ok := strings.CutPrefix(checksum, checksumForm)
	if sum, err := hex.DecodeString(digits); !ok || err != nil || len(sum) != sha256.Size {
		return nil, &fault{
			reason: fmt.Sprintf("%q is no checksum", checksum),
			fix:    "write it as sha256: and 64 hexadecimal digits",
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, &fault{
			reason: "its checksum cannot be verified: " + cause(err),
			fix:    "make the file readable", err: err,
		}
	}
	got, err := sumOf(file)
	if err != nil {
		_ = file.Close()
		return nil, &fault{reason: "its checksum cannot be verified: " + cause(err), err: err}
	}
	if !strings.EqualFold(got, checksum) {
		_ = file.Close()
		return nil, &fault{
			reason: fmt.Sprintf("its checksum is %s, not %s", got, checksum),
			fix:    "install the release that the checksum belongs to, or correct the checksum",
		}
	}
	p := &program{path: path, file: file}
	if p.fd, err = moveUp(file); err != nil {
		p.close()
		return nil, &fault{reason: "its descriptor cannot be kept: " + cause(err), err: err}
	}
	return p, nil
}

// Checksum returns the checksum of a file in the form that Options takes.
func Checksum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // it was only read
	return sumOf(file)
}

// sumOf is the checksum of what is left of r.
func sumOf(r io.Reader) (string, error) {
	hash := sha256.New()
	if _, err := io.Copy(hash, r); err != nil {
		return "", err
	}
	return checksumForm + hex.EncodeToString(hash.Sum(nil)), nil
}

// firstFree is the first descriptor that no plugin is given; a plugin with the
// host's standard input and output has 0 to 4.
const firstFree = 16

// moveUp duplicates a file's descriptor to a number that the child's own
// descriptors do not overwrite before it is executed.
func moveUp(f *os.File) (int, error) {
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, firstFree)
}

func (p *program) close() {
	if p.file != nil {
		_ = p.file.Close()
	}
	if p.fd >= firstFree {
		_ = unix.Close(p.fd)
	}
	p.fd = -1
}

// script says that the kernel hands the file to an interpreter, which opens it
// by the name that was executed.
func (p *program) script() bool {
	head := make([]byte, 2)
	n, _ := p.file.ReadAt(head, 0)
	return bytes.Equal(head[:n], []byte("#!"))
}

// examine says why a file cannot be executed as far as that is seen without
// executing it; nil = nothing is known.
func examine(path string) *fault {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		bad := missing(path, err)
		bad.err = err
		return bad
	case info.IsDir():
		return &fault{reason: "it is a directory", fix: "give the path of the file in it"}
	case !info.Mode().IsRegular():
		return &fault{reason: "it is not a regular file but " + kind(info.Mode()), fix: "give the path of the plugin's binary"}
	case info.Mode()&0o111 == 0:
		return &fault{
			reason: fmt.Sprintf("it is not executable, its mode is %04o", info.Mode().Perm()),
			fix:    "run chmod +x on it",
		}
	}
	if err := unix.Access(path, unix.X_OK); errors.Is(err, unix.EACCES) && !noexec(path) {
		return &fault{
			reason: fmt.Sprintf("this user may not execute it, its mode is %04o", info.Mode().Perm()),
			fix:    "change its owner or mode", err: err,
		}
	}
	return nil
}

func kind(m os.FileMode) string {
	switch {
	case m&os.ModeNamedPipe != 0:
		return "a named pipe"
	case m&os.ModeSocket != 0:
		return "a socket"
	case m&os.ModeDevice != 0:
		return "a device"
	default:
		return "something else"
	}
}
