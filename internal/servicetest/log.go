// SPDX-License-Identifier: Apache-2.0

package servicetest

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// Log collects a log. Its zero value is empty.
type Log struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write adds to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns all of it.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Logger returns a logger of all levels that writes here, as text.
func (l *Log) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Lines returns the lines that have all of words.
func (l *Log) Lines(words ...string) []string {
	var out []string
lines:
	for line := range strings.Lines(l.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue lines
			}
		}
		out = append(out, line)
	}
	return out
}

// Coded counts the lines with this code.
func (l *Log) Coded(code string) int {
	n := 0
	for _, line := range l.Lines("code=" + code) {
		if strings.Contains(line, "code="+code+" ") || strings.HasSuffix(line, "code="+code+"\n") {
			n++
		}
	}
	return n
}

// Silent checks that nothing was logged as a warning or an error but findings of
// the start.
func (l *Log) Silent(t testing.TB) {
	t.Helper()
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, "level=WARN") && !strings.Contains(line, "code=L-CHECK") || strings.Contains(line, "level=ERROR") {
			t.Errorf("logged %s", line)
		}
	}
}
