// SPDX-License-Identifier: Apache-2.0

package position

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
)

// What is said of a position that cannot be written names it once.
func TestFailuresNameThePositionOnce(t *testing.T) {
	err := failed("write", "/data/billing/orders.pos", &fs.PathError{Op: "write", Path: "/data/billing/orders.pos", Err: syscall.ENOSPC})
	if want := "write position /data/billing/orders.pos: no space left on device"; err.Error() != want || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %q, want %q", err, want)
	}
}
