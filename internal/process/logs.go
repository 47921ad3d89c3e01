// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

const (
	// otherBurst is how many lines that are no log records pass at once.
	otherBurst = 20

	// otherLimit is how much of such a line is logged.
	otherLimit = 4 << 10
)

// logs turns what a plugin prints into the host's log: JSON of hclog into
// records, other lines into warnings, few enough that a plugin cannot flood it.
type logs struct {
	log   *slog.Logger
	other *limiter
	tail  *tail
}

func newLogs(log *slog.Logger) *logs {
	return &logs{log: log, other: newLimiter(otherBurst, time.Now()), tail: newTail()}
}

// stderr takes one line of the plugin's stderr.
func (l *logs) stderr(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	if r, ok := parseRecord(line); ok {
		l.tail.add(r.line())
		l.record(r)
		return
	}
	switch l.tail.addRaw(string(line)) {
	case panicBegins:
		l.other.reset() // for the lines that say where
		l.text(slog.LevelError, "plugin panics", line)
	case panicGoesOn:
		l.text(slog.LevelError, "plugin panics", line)
	case noPanic:
		l.text(slog.LevelWarn, "plugin prints", line)
	}
}

// stdout takes one line of the plugin's stdout that is no handshake.
func (l *logs) stdout(line []byte) {
	if len(bytes.TrimSpace(line)) > 0 {
		l.text(slog.LevelWarn, "plugin prints to stdout", line)
	}
}

func (l *logs) text(level slog.Level, msg string, line []byte) {
	ok, dropped := l.other.take(time.Now())
	if !ok {
		return
	}
	text := string(line[:min(len(line), otherLimit)])
	attrs := []slog.Attr{slog.String("line", strings.ToValidUTF8(text, "\ufffd"))}
	if len(line) > otherLimit {
		attrs = append(attrs, slog.Int("bytes", len(line)))
	}
	if dropped > 0 {
		attrs = append(attrs, slog.Int("dropped", dropped))
	}
	l.log.LogAttrs(context.Background(), level, msg, attrs...)
}

func (l *logs) record(r record) {
	h := l.log.Handler()
	if !h.Enabled(context.Background(), r.level) {
		return
	}
	out := slog.NewRecord(r.at, r.level, r.message, 0)
	out.AddAttrs(r.attrs...)
	_ = h.Handle(context.Background(), out)
}

// record is one record of a plugin's log.
type record struct {
	at      time.Time
	level   slog.Level
	message string
	attrs   []slog.Attr // in the plugin's order
}

// levelTrace is hclog's level below debug.
const levelTrace = slog.LevelDebug - 4

// stamp is hclog's form of a time.
const stamp = "2006-01-02T15:04:05.000000Z07:00"

// parseRecord reads a line of hclog's JSON; ok is false for any other line.
func parseRecord(line []byte) (r record, ok bool) {
	if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
		return r, false
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return r, false
	}
	var leveled, said bool
	r.at = time.Now()
	for d.More() {
		t, err := d.Token()
		key, isKey := t.(string)
		var v any
		if err != nil || !isKey || d.Decode(&v) != nil {
			return r, false
		}
		text, _ := v.(string)
		switch key {
		case "@level":
			r.level, leveled = parseLevel(text)
		case "@message":
			r.message, said = text, true
		case "@timestamp":
			if at, err := time.Parse(stamp, text); err == nil {
				r.at = at
			}
		default:
			r.attrs = append(r.attrs, slog.Any(strings.TrimPrefix(key, "@"), plain(v)))
		}
	}
	if t, err := d.Token(); err != nil || t != json.Delim('}') || d.More() {
		return r, false
	}
	return r, leveled && said
}

func parseLevel(s string) (slog.Level, bool) {
	switch s {
	case "trace":
		return levelTrace, true
	case "debug":
		return slog.LevelDebug, true
	case "info":
		return slog.LevelInfo, true
	case "warn":
		return slog.LevelWarn, true
	case "error":
		return slog.LevelError, true
	default:
		return 0, false
	}
}

// plain turns a JSON number into a Go one; other values stay as they are.
func plain(v any) any {
	n, ok := v.(json.Number)
	if !ok {
		return v
	}
	if i, err := n.Int64(); err == nil {
		return i
	}
	if f, err := n.Float64(); err == nil {
		return f
	}
	return n.String()
}

// line is the record for people.
func (r record) line() string {
	var b strings.Builder
	b.WriteString(strings.ToLower(r.level.String()) + ": " + r.message)
	for _, a := range r.attrs {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
	}
	return b.String()
}

// logLevel is the lowest level that a logger takes, in the protocol's words.
func logLevel(log *slog.Logger) string {
	for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		if log.Enabled(context.Background(), l) {
			return strings.ToLower(l.String())
		}
	}
	return "error"
}
