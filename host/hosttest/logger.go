// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-go/longshore/host"
)

// Logger is the option that writes a host's log to that of the test. Values of
// several lines, as the stack of a panic, stand below their line.
func Logger(tb testing.TB) host.Option {
	return host.WithLogger(slog.New(newLines(tb.Output())))
}

// lines writes records as text, and values of several lines below them.
type lines struct {
	out  *output
	text slog.Handler // writes to out.line, as it was given attributes and groups
}

// output is where all handlers of one log write.
type output struct {
	mu   sync.Mutex
	to   io.Writer
	line bytes.Buffer
}

func newLines(to io.Writer) *lines {
	o := &output{to: to}
	return &lines{out: o, text: slog.NewTextHandler(&o.line, &slog.HandlerOptions{Level: slog.LevelDebug})}
}

// Enabled implements slog.Handler.
func (l *lines) Enabled(ctx context.Context, level slog.Level) bool {
	return l.text.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (l *lines) WithAttrs(as []slog.Attr) slog.Handler {
	return &lines{out: l.out, text: l.text.WithAttrs(as)}
}

// WithGroup implements slog.Handler.
func (l *lines) WithGroup(name string) slog.Handler {
	return &lines{out: l.out, text: l.text.WithGroup(name)}
}

// Handle implements slog.Handler.
func (l *lines) Handle(ctx context.Context, r slog.Record) error {
	var as, long []slog.Attr
	r.Attrs(func(a slog.Attr) bool {
		if a.Value = a.Value.Resolve(); strings.Contains(a.Value.String(), "\n") {
			long = append(long, a)
		} else {
			as = append(as, a)
		}
		return true
	})
	short := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	short.AddAttrs(as...)
	o := l.out
	o.mu.Lock()
	defer o.mu.Unlock()
	o.line.Reset()
	if err := l.text.Handle(ctx, short); err != nil {
		return err
	}
	for _, a := range long {
		o.line.WriteString("    " + a.Key + ":\n")
		for line := range strings.Lines(strings.TrimRight(a.Value.String(), "\n")) {
			o.line.WriteString("        " + line)
		}
		o.line.WriteString("\n")
	}
	_, err := o.to.Write(slices.Clone(o.line.Bytes()))
	return err
}
