// SPDX-License-Identifier: Apache-2.0

package position

import (
	"fmt"
	"io/fs"
	"strings"
)

// LockedError says that somebody else reads with the group.
type LockedError struct {
	Path        string // of the position
	Group, Name string
	Holder      string // "pid owner" of the other one, "" = unknown
}

func (e *LockedError) Error() string {
	pid, owner, ok := strings.Cut(e.Holder, " ")
	if !ok {
		return fmt.Sprintf("the group's position %s is held by another process", e.Path)
	}
	return fmt.Sprintf("the group's position %s is held by %s, process %s", e.Path, owner, pid)
}

// CorruptError says that a file is not the position that it should be.
type CorruptError struct {
	Path   string
	Reason string
	Fix    string // what to do about it
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("the group's position %s cannot be used: %s", e.Path, e.Reason)
}

func damaged(path, reason string) *CorruptError {
	return &CorruptError{Path: path, Reason: reason, Fix: "remove it to let the group begin anew"}
}

// NameError says that a group or subscription cannot have a position.
type NameError struct {
	Field, Value string // "group" or "name"
	Reason       string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("%s %q %s", e.Field, e.Value, e.Reason)
}

// failed says what could not be done with a position, and names it once.
func failed(doing, path string, err error) error {
	if e, ok := err.(*fs.PathError); ok { //nolint:errorlint // what is around it says more
		err = e.Err
	}
	return fmt.Errorf("%s position %s: %w", doing, path, err)
}
