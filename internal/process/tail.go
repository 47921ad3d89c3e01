// SPDX-License-Identifier: Apache-2.0

package process

import (
	"strings"
	"sync"
)

const (
	tailLines = 20  // the last lines, and as many of a panic's first
	tailBytes = 500 // of each
)

// tail keeps what a plugin printed last, and how its panic began: the last
// lines of a long stack name no cause.
type tail struct {
	mu    sync.Mutex
	panic []string
	last  []string
}

func newTail() *tail { return &tail{} }

// panics says what a line is to a panic.
type panics uint8

const (
	noPanic panics = iota
	panicBegins
	panicGoesOn // for the lines that are kept of it
)

// addRaw adds a line that is no log record.
func (t *tail) addRaw(line string) panics {
	t.mu.Lock()
	defer t.mu.Unlock()
	line = cut(line)
	switch n := len(t.panic); {
	case n == 0 && (strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")):
		t.panic = append(t.panic, line)
		return panicBegins
	case n > 0 && n < tailLines:
		t.panic = append(t.panic, line)
		return panicGoesOn
	}
	t.push(line)
	return noPanic
}

// add adds a line for people.
func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.push(cut(line))
}

func (t *tail) push(line string) {
	if len(t.last) == tailLines {
		t.last = append(t.last[:0], t.last[1:]...)
	}
	t.last = append(t.last, line)
}

// lines returns them, newest last.
func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(append([]string{}, t.panic...), t.last...)
}

func cut(line string) string {
	if len(line) > tailBytes {
		line = line[:tailBytes] + "..."
	}
	return strings.ToValidUTF8(line, "\ufffd")
}
