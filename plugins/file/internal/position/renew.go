// SPDX-License-Identifier: Apache-2.0

package position

import (
	"fmt"
	"os"
	"time"
)

// lookEvery is how often a tracker looks, when it writes, whether its file is
// still the one at its path.
const lookEvery = time.Second

// RenewedError says that a position was removed or replaced while it was in use,
// and was written anew.
type RenewedError struct{ Path string }

func (e *RenewedError) Error() string {
	return fmt.Sprintf("position %s was removed while the group reads, and was written anew; to let the group begin anew, remove it while nobody reads with the group", e.Path)
}

// file is a position file in use.
type file struct {
	*os.File
	open   func() (*os.File, error) // opens and locks what is at its path now
	looked time.Time
}

// lost reports whether something else or nothing is at the path.
func (f *file) lost(now time.Time) bool {
	if now.Sub(f.looked) < lookEvery {
		return false
	}
	f.looked = now
	mine, err := f.Stat()
	if err != nil {
		return false // the write says what is wrong
	}
	there, err := os.Stat(f.Name())
	return os.IsNotExist(err) || err == nil && !os.SameFile(mine, there)
}

// renew goes on in the file at the path where the one that is open is lost, and
// reports whether it does. What a file there says is overwritten: this is the
// group's reader. t.mu is held.
func (t *Tracker) renew() (bool, error) {
	old, ok := t.store.disk.(*file)
	if !ok || !old.lost(time.Now()) {
		return false, nil
	}
	fail := func(err error) (bool, error) {
		old.looked = time.Time{} // looked at again with the next write
		t.whole = true
		return false, err
	}
	f, err := old.open()
	if err != nil {
		return fail(err)
	}
	s := store{disk: &file{File: f, open: old.open, looked: old.looked}, path: t.store.path}
	if _, err := s.load(); err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return fail(err)
	}
	old.Close() //nolint:errcheck // nobody finds it any more
	t.store, t.whole = s, true
	return true, nil
}
