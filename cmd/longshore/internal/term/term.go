// SPDX-License-Identifier: Apache-2.0

// Package term writes for terminals, and plainly for everything else.
package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// Style colours texts. The zero value leaves them as they are.
type Style struct{ on bool }

// For returns the style for a file: colours on a terminal, unless NO_COLOR is
// set or the terminal is dumb.
func For(f *os.File, lookup func(string) (string, bool)) Style {
	if v, ok := lookup("NO_COLOR"); ok && v != "" {
		return Style{}
	}
	if v, _ := lookup("TERM"); v == "dumb" {
		return Style{}
	}
	return Style{on: Is(f)}
}

// Is reports whether a file is a terminal.
func Is(f *os.File) bool {
	if f == nil {
		return false
	}
	// Not Fd: it can change the flags of a file that is shared with others.
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	terminal := false
	err = conn.Control(func(fd uintptr) {
		_, err := unix.IoctlGetTermios(int(fd), getTermios)
		terminal = err == nil
	})
	return err == nil && terminal
}

// The escape sequences of SGR (ECMA-48).
const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	faint  = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	blue   = "\x1b[34m"
)

// Bold makes headings.
func (s Style) Bold(text string) string { return s.with(bold, text) }

// Faint makes what is beside the point.
func (s Style) Faint(text string) string { return s.with(faint, text) }

// Red makes what went wrong.
func (s Style) Red(text string) string { return s.with(red, text) }

// Green makes what went well.
func (s Style) Green(text string) string { return s.with(green, text) }

// Yellow makes what deserves a look.
func (s Style) Yellow(text string) string { return s.with(yellow, text) }

// Blue makes names.
func (s Style) Blue(text string) string { return s.with(blue, text) }

func (s Style) with(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return code + text + reset
}
