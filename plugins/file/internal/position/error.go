// SPDX-License-Identifier: Apache-2.0

package position

import "fmt"

// LockedError says that somebody else reads with the group.
type LockedError struct {
	Path        string // of the position
	Group, Name string
	Holder      string // "pid owner" of the other one, "" = unknown
}

func (e *LockedError) Error() string {
	holder := e.Holder
	if holder == "" {
		holder = "another process"
	}
	return fmt.Sprintf("group %q already reads %q: %s is held by %s; a group has one reader for each name, so end that one or use another group",
		e.Group, e.Name, e.Path, holder)
}

// CorruptError says that a file is not the position that it should be.
type CorruptError struct {
	Path   string
	Reason string
	Fix    string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("position %s cannot be used: %s; %s", e.Path, e.Reason, e.Fix)
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
	return fmt.Sprintf("%s %q %s; use letters, digits, \".\", \"_\" and \"-\", at most %d", e.Field, e.Value, e.Reason, maxName)
}
