// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"log/slog"
	"strings"
	"sync"
)

// logLines is how many lines of a plugin's log a case keeps, and logBytes how
// much of each.
const (
	logLines = 40
	logBytes = 1 << 10
)

// logbook keeps the newest lines of the plugins of one case, passes records on,
// and looks for what must not be in a log.
type logbook struct {
	to slog.Handler // nil = nobody

	mu      sync.Mutex
	lines   []string
	strays  []string // lines of standard output behind the handshake
	secrets []string // texts that no log may hold
	leaked  bool
}

func newLogbook(to *slog.Logger) *logbook {
	b := &logbook{}
	if to != nil {
		b.to = to.Handler()
	}
	return b
}

// logger is what a process logs to.
func (b *logbook) logger() *slog.Logger { return slog.New(&logHandler{book: b}) }

func (b *logbook) add(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.secrets {
		b.leaked = b.leaked || strings.Contains(line, s)
	}
	if len(b.lines) == logLines {
		b.lines = append(b.lines[:0], b.lines[1:]...)
	}
	b.lines = append(b.lines, line[:min(len(line), logBytes)])
}

// stray takes a line of standard output that is no handshake.
func (b *logbook) stray(line []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.strays) < logLines {
		b.strays = append(b.strays, string(line[:min(len(line), logBytes)]))
	}
}

// last returns the newest lines.
func (b *logbook) last() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.lines...)
}

// printed returns what came on standard output behind the handshake.
func (b *logbook) printed() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.strays...)
}

// watch makes the book look for texts that must not be logged.
func (b *logbook) watch(secrets ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.secrets = append(b.secrets, secrets...)
}

// told reports whether one of them was.
func (b *logbook) told() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leaked
}

// logHandler writes records into a logbook.
type logHandler struct {
	book  *logbook
	group string
	next  []func(slog.Handler) slog.Handler
}

// Enabled implements slog.Handler: what a plugin logs is kept at every level.
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString(strings.ToLower(r.Level.String()) + ": " + r.Message)
	r.Attrs(func(a slog.Attr) bool {
		line.WriteString(" " + h.group + a.Key + "=" + a.Value.String())
		return true
	})
	h.book.add(line.String())
	if to := h.book.to; to != nil {
		for _, f := range h.next {
			to = f(to)
		}
		if to.Enabled(ctx, r.Level) {
			return to.Handle(ctx, r)
		}
	}
	return nil
}

// WithAttrs implements slog.Handler. What names the process is left out of the
// case's own lines.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.next = append(h.next[:len(h.next):len(h.next)], func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) })
	return &c
}

// WithGroup implements slog.Handler.
func (h *logHandler) WithGroup(name string) slog.Handler {
	c := *h
	c.group += name + "."
	c.next = append(h.next[:len(h.next):len(h.next)], func(to slog.Handler) slog.Handler { return to.WithGroup(name) })
	return &c
}
