// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"io"
	"log/slog"
	"strings"
	"time"
)

// The keys of hclog's JSON lines, which the host's end of the log bridge reads.
const (
	hclogTime    = "@timestamp"
	hclogLevel   = "@level"
	hclogMessage = "@message"
	// hclogTimeLayout has microseconds, as hclog writes it.
	hclogTimeLayout = "2006-01-02T15:04:05.000000Z07:00"
)

// newLogger returns a logger whose records are hclog's JSON lines on w, each
// one write.
func newLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: hclogAttr}))
}

// hclogAttr renames the built-in attributes of a record. An attribute of the
// author's that has one of hclog's names would stand for it, so it is set apart.
func hclogAttr(groups []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		if t, ok := a.Value.Any().(time.Time); ok {
			return slog.String(hclogTime, t.Format(hclogTimeLayout))
		}
	case slog.LevelKey:
		if l, ok := a.Value.Any().(slog.Level); ok {
			return slog.String(hclogLevel, hclogLevelName(l))
		}
	case slog.MessageKey:
		a.Key = hclogMessage
	case hclogTime, hclogLevel, hclogMessage:
		a.Key = strings.TrimPrefix(a.Key, "@")
	}
	return a
}

// hclogLevelName returns hclog's name of the level at or below l.
func hclogLevelName(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "error"
	case l >= slog.LevelWarn:
		return "warn"
	case l >= slog.LevelInfo:
		return "info"
	case l >= slog.LevelDebug:
		return "debug"
	}
	return "trace"
}
