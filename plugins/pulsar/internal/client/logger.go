// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/apache/pulsar-client-go/pulsar/log"
)

// logger takes the library's lines, all at Debug: what is worth a line is told by
// the host and by what stands around the library, with its reason and seldom. The
// library's own debug lines are left out, for they hold whole messages.
type logger struct{ to *slog.Logger }

// newLogger returns a logger of the library that writes to one of ours.
func newLogger(to *slog.Logger) log.Logger { return logger{to.With("library", "pulsar-client-go")} }

func (l logger) enabled() bool { return l.to.Enabled(context.Background(), slog.LevelDebug) }

func (l logger) line(level string, args []any) {
	if l.enabled() {
		l.to.Debug(fmt.Sprint(args...), "as", level)
	}
}

func (l logger) format(level, format string, args []any) {
	if l.enabled() {
		l.to.Debug(fmt.Sprintf(format, args...), "as", level)
	}
}

// SubLogger returns one whose lines have these attributes.
func (l logger) SubLogger(fields log.Fields) log.Logger { return l.with(fields) }

// WithFields returns one whose lines have these attributes.
func (l logger) WithFields(fields log.Fields) log.Entry { return l.with(fields) }

// WithField returns one whose lines have this attribute.
func (l logger) WithField(name string, value any) log.Entry {
	return l.with(log.Fields{name: value})
}

// WithError returns one whose lines have the error.
func (l logger) WithError(err error) log.Entry { return l.with(log.Fields{"error": err}) }

// with costs nothing where nothing is logged: the library calls it per request.
func (l logger) with(fields log.Fields) logger {
	if !l.enabled() {
		return l
	}
	args := make([]any, 0, 2*len(fields))
	for name, value := range fields {
		args = append(args, name, value)
	}
	return logger{l.to.With(args...)}
}

func (l logger) Debug(...any)                      {}
func (l logger) Info(args ...any)                  { l.line("info", args) }
func (l logger) Warn(args ...any)                  { l.line("warn", args) }
func (l logger) Error(args ...any)                 { l.line("error", args) }
func (l logger) Debugf(string, ...any)             {}
func (l logger) Infof(format string, args ...any)  { l.format("info", format, args) }
func (l logger) Warnf(format string, args ...any)  { l.format("warn", format, args) }
func (l logger) Errorf(format string, args ...any) { l.format("error", format, args) }
