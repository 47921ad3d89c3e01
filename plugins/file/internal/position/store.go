// SPDX-License-Identifier: Apache-2.0

package position

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// minLog is how much of a slot is filled with changes at least before the other
// one is begun.
const minLog = 64 << 10

// disk is a position file.
type disk interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
}

// store writes states and changes to a position file.
type store struct {
	disk    disk
	path    string
	active  int    // the newer slot
	counter uint64 // of the active slot, 0 = there is none
	end     int    // of the active slot's changes, 0 before the first write
	limit   int    // where changes end
}

// openFile opens and locks the file of a position, and makes it if need be.
func openFile(folder, group, name, owner string) (*os.File, error) {
	dir := filepath.Join(folder, group)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of the group's positions: %w", err)
	}
	path := filepath.Join(dir, fileName(name))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open position: %w", err)
	}
	if err := take(f, group, name, owner); err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	return f, nil
}

// take locks a file, checks whose it is and says who has it now.
func take(f *os.File, group, name, owner string) error {
	switch err := lock(f); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return &LockedError{Path: f.Name(), Group: group, Name: name, Holder: readHolder(f)}
	case err != nil:
		return fmt.Errorf("lock position %s: %w", f.Name(), err)
	}
	if err := begin(f, f.Name(), group, name); err != nil {
		return err
	}
	holder := strconv.Itoa(os.Getpid()) + " " + owner
	if _, err := f.WriteAt(appendText(nil, holder[:min(len(holder), 500)]), holderAt); err != nil {
		return failed("write", f.Name(), err)
	}
	return nil
}

// lock takes the whole file. The kernel gives it back when the process ends.
func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// begin checks the head of a file, or writes it where no state was ever saved.
func begin(f *os.File, path, group, name string) error {
	head := make([]byte, slotsAt+1)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return failed("read", path, err)
	}
	head = head[:min(n, holderAt)]
	if n <= slotsAt && allZero(head) {
		if _, err := f.WriteAt(appendHead(nil, group, name), 0); err != nil {
			if cut := f.Truncate(0); cut != nil {
				err = errors.Join(err, cut)
			}
			return failed("write", path, err)
		}
		return nil
	}
	hisGroup, hisName, reason := readHead(head)
	switch {
	case reason != "":
		return damaged(path, reason)
	case hisGroup != group || hisName != name:
		return &CorruptError{
			Path:   path,
			Reason: fmt.Sprintf("it is the position of group %q and subscription %q", hisGroup, hisName),
			Fix:    "the file system takes names for the same that differ in case, so use others",
		}
	}
	return nil
}

// load reads the newer sound slot. It returns nil where no state was saved yet.
func (s *store) load() (*state, error) {
	var best *slot
	empty := true
	for i := range 2 {
		b, err := s.read(i)
		if err != nil {
			return nil, failed("read", s.path, err)
		}
		empty = empty && allZero(b) // zeros: the power went before they were written
		found, err := decodeSlot(b)
		if err != nil {
			return nil, damaged(s.path, err.Error())
		}
		if found != nil && (best == nil || found.counter > best.counter) {
			best, s.active, s.counter, s.end = found, i, found.counter, found.end
		}
	}
	if empty {
		return nil, nil
	}
	if best == nil {
		return nil, damaged(s.path, "the checksums of both slots do not fit")
	}
	return &best.state, nil
}

// read reads what a slot can be, as its head says how large it is.
func (s *store) read(i int) ([]byte, error) {
	at := int64(slotsAt + i*slotSize)
	b := make([]byte, slotHead)
	for {
		n, err := s.disk.ReadAt(b, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n < slotHead || len(b) > slotHead {
			return b[:n], nil
		}
		b = make([]byte, slotLimit(slotHead+int(min(slotSize, binary.BigEndian.Uint32(b[12:])))))
	}
}

// slotLimit is how long a slot becomes that begins with so many bytes of head and
// state.
func slotLimit(n int) int { return min(slotSize, n+max(minLog, n)) }

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// fits reports whether n bytes of changes have their place in the active slot.
func (s *store) fits(n int) bool { return s.counter > 0 && s.end+n <= s.limit }

// append writes changes, which are sealed.
func (s *store) append(b []byte) error {
	if err := s.write(b, s.active, s.end); err != nil {
		return err
	}
	s.end += len(b)
	return nil
}

// replace begins the other slot with a state, in front of which b has the place
// of a slot's head, and returns its checksum.
func (s *store) replace(b []byte) (sum uint32, err error) {
	to := 0
	if s.counter > 0 {
		to = 1 - s.active
	}
	sum = sealSlot(b, s.counter+1)
	if err := s.write(b, to, 0); err != nil {
		if s.counter == 0 {
			// Without any state a group is new, which half a state is not.
			err = errors.Join(err, s.disk.Truncate(slotsAt))
		}
		return 0, err
	}
	s.active, s.counter, s.end = to, s.counter+1, len(b)
	s.limit = slotLimit(len(b))
	return sum, nil
}

func (s *store) write(b []byte, slot, at int) error {
	if _, err := s.disk.WriteAt(b, int64(slotsAt+slot*slotSize+at)); err != nil {
		return failed("write", s.path, err)
	}
	return nil
}
