// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar/log"
)

// fieldCorrupted is the field of the one line of the library that says that a message
// is lost: what it cannot read it acks by itself, and tells nobody else.
const fieldCorrupted = "validationError"

// lossEvery is how far lines about lost messages are apart.
const lossEvery = time.Second

// logger takes the library's lines, all at Debug: what is worth a line is told by
// the host and by what stands around the library, with its reason and seldom. But
// that a message is lost is a warning. The library's own debug lines are left out, for
// they hold whole messages.
type logger struct {
	to     *slog.Logger
	fields []any // of the lines, as slog takes them
	losses *losses
	loss   bool // the line is about a lost message
}

// newLogger returns a logger of the library that writes to one of ours.
func newLogger(to *slog.Logger) log.Logger {
	return logger{to: to, losses: &losses{}}
}

// losses bounds the lines about lost messages.
type losses struct {
	mu      sync.Mutex
	last    time.Time // when there was a line
	without int       // lost since
}

// note counts a loss and returns how many there were since the last line, 0 = there was
// one just now.
func (l *losses) note() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.without++
	if time.Since(l.last) < lossEvery {
		return 0
	}
	n := l.without
	l.last, l.without = time.Now(), 0
	return n
}

// write writes a line.
func (l logger) write(level string, text func() string) {
	if l.loss {
		if n := l.losses.note(); n > 0 {
			l.to.With(l.fields...).Warn("Pulsar message lost: the library cannot read it and has acked it", "lost", n)
		}
		return
	}
	if l.to.Enabled(context.Background(), slog.LevelDebug) {
		l.to.With(l.fields...).Debug(text(), "library", "pulsar-client-go", "as", level)
	}
}

func (l logger) line(level string, args []any) {
	l.write(level, func() string { return fmt.Sprint(args...) })
}

func (l logger) format(level, format string, args []any) {
	l.write(level, func() string { return fmt.Sprintf(format, args...) })
}

// SubLogger returns one whose lines have these fields.
func (l logger) SubLogger(fields log.Fields) log.Logger { return l.with(fields) }

// WithFields returns one whose lines have these fields.
func (l logger) WithFields(fields log.Fields) log.Entry { return l.with(fields) }

// WithField returns one whose lines have this field.
func (l logger) WithField(name string, value any) log.Entry {
	return l.with(log.Fields{name: value})
}

// WithError returns one whose lines have the error.
func (l logger) WithError(err error) log.Entry { return l.with(log.Fields{"error": err}) }

func (l logger) with(fields log.Fields) logger {
	l.fields = slices.Clip(l.fields)
	for name, value := range fields {
		l.fields = append(l.fields, name, value)
		l.loss = l.loss || name == fieldCorrupted
	}
	return l
}

func (l logger) Debug(...any)                      {}
func (l logger) Info(args ...any)                  { l.line("info", args) }
func (l logger) Warn(args ...any)                  { l.line("warn", args) }
func (l logger) Error(args ...any)                 { l.line("error", args) }
func (l logger) Debugf(string, ...any)             {}
func (l logger) Infof(format string, args ...any)  { l.format("info", format, args) }
func (l logger) Warnf(format string, args ...any)  { l.format("warn", format, args) }
func (l logger) Errorf(format string, args ...any) { l.format("error", format, args) }
