// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/longshore-go/longshore/core"
)

// watch returns a logger for a stage that counts what only the log tells.
func watch(s *screen, o Options) *slog.Logger {
	w := &watcher{screen: s}
	if o.Log.Enabled(context.Background(), slog.LevelDebug) {
		w.next = o.Log.Handler()
	}
	return slog.New(w)
}

// watcher is a slog.Handler that reads codes.
type watcher struct {
	screen *screen
	next   slog.Handler // nil = none
	attrs  []slog.Attr
}

// Enabled implements slog.Handler.
func (w *watcher) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo || w.next != nil && w.next.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (w *watcher) Handle(ctx context.Context, r slog.Record) error {
	seen := map[string]string{}
	keep := func(a slog.Attr) bool { seen[a.Key] = a.Value.String(); return true }
	for _, a := range w.attrs {
		keep(a)
	}
	r.Attrs(keep)
	switch seen["code"] {
	case core.LogStream.String():
		w.screen.bad(seen["position"], seen["error"])
		if since, err := strconv.Atoi(seen["since"]); err == nil { // the line stands for so many
			w.screen.count(func(c *counts) { c.bad += since - 1 })
		}
	case core.LogDecode.String():
		w.screen.undecodable(seen["error"])
	case core.LogCapDead.String():
		w.screen.count(func(c *counts) { c.capped++ })
	}
	if w.next != nil && w.next.Enabled(ctx, r.Level) {
		return w.next.Handle(ctx, r)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (w *watcher) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *w
	c.attrs = append(append([]slog.Attr(nil), w.attrs...), attrs...)
	if w.next != nil {
		c.next = w.next.WithAttrs(attrs)
	}
	return &c
}

// WithGroup implements slog.Handler. Codes are outside of groups.
func (w *watcher) WithGroup(name string) slog.Handler {
	c := *w
	if w.next != nil {
		c.next = w.next.WithGroup(name)
	}
	return &c
}
