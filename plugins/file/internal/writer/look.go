// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// look checks that the file is as this writer left it.
func (w *Writer) look(now time.Time) error {
	var st unix.Stat_t
	for {
		err := unix.Fstat(w.fd, &st)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return &WriteError{Path: w.path, Offset: w.block.off, Err: err}
		}
		break
	}
	if st.Size != w.size {
		return &ForeignError{Path: w.path, Reason: fmt.Sprintf("it is %d bytes long and was left with %d", st.Size, w.size)}
	}
	if since := now.Sub(w.looked); since >= 0 && since < lookEvery && st.Nlink > 0 {
		return nil
	}
	w.looked = now
	there, err := segment.IdentifyPath(w.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &ForeignError{Path: w.path, Reason: "it is gone from its path"}
	case err != nil:
		return &WriteError{Path: w.path, Offset: w.block.off, Err: err}
	case there != w.file.ID:
		return &ForeignError{Path: w.path, Reason: "another file stands at its path"}
	}
	return nil
}

// noRoom reports whether a write failed for want of room, which may come.
func noRoom(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG) || errors.Is(err, io.ErrShortWrite)
}
