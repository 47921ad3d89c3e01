// SPDX-License-Identifier: Apache-2.0

package mosquitto

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// log is what one life of a broker has logged.
type log struct {
	tb    testing.TB
	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced when something was added
	over  bool
}

func newLog(tb testing.TB) *log { return &log{tb: tb, more: make(chan struct{})} }

// take adds lines until the end.
func (l *log) take(from io.Reader) {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		l.mu.Lock()
		l.lines = append(l.lines, strings.Clone(lines.Text()))
		l.wake()
		l.mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, from) // behind a line too long: it may not block
}

func (l *log) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.wake()
}

func (l *log) wake() {
	close(l.more)
	l.more = make(chan struct{})
}

// String returns the log of the broker since it was started last.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// Lines returns the lines since the broker was started last that have all of
// words, in order.
func (l *log) Lines(words ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.with(words)
}

func (l *log) with(words []string) []string {
	var out []string
	for _, line := range l.lines {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			out = append(out, line)
		}
	}
	return out
}

// Await waits for n lines since the broker was started last that have all of
// words, and returns those that there are. Packets are logged as "Received PUBACK
// from ID (Mid: 1, RC:0)" and "Sending PUBLISH to ID (d0, q1, r0, m1, 'topic', ...
// (5 bytes))", those of subscriptions as "ID qos filter".
func (l *log) Await(n int, words ...string) []string {
	l.tb.Helper()
	if !l.wait(n, words...) {
		l.tb.Fatalf("fewer than %d lines of %q in the broker's log:\n%s", n, words, l)
	}
	return l.Lines(words...)
}

// wait says whether the lines came.
func (l *log) wait(n int, words ...string) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		l.mu.Lock()
		got, more, over := len(l.with(words)), l.more, l.over
		l.mu.Unlock()
		if got >= n {
			return true
		}
		if over {
			return false
		}
		select {
		case <-more:
		case <-timer.C:
			return false
		}
	}
}
