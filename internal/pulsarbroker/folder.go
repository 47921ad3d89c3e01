// SPDX-License-Identifier: Apache-2.0

package pulsarbroker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// newFolder makes a folder for a broker, named for this process, and removes those
// of processes that were killed.
func newFolder() (string, error) {
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), "longshore-pulsar-*-*")) // the pattern is one
	for _, folder := range old {
		if owner(folder).gone() {
			_ = os.RemoveAll(folder) // somebody else's stays
		}
	}
	return os.MkdirTemp("", fmt.Sprintf("longshore-pulsar-%d-", os.Getpid()))
}

// process is the id of one; 0 is none.
type process int

// owner returns the process that a folder is named for.
func owner(folder string) (p process) {
	_, _ = fmt.Sscanf(strings.TrimPrefix(filepath.Base(folder), "longshore-pulsar-"), "%d-", &p) // else it is nobody's
	return p
}

// gone reports whether there was a process and is no more.
func (p process) gone() bool { return p > 0 && errors.Is(syscall.Kill(int(p), 0), syscall.ESRCH) }
