// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"log/slog"

	"github.com/longshore-go/longshore/core"
)

// formHandler puts the form's names into the findings that a host logs, as
// Describe does for those that it returns.
type formHandler struct{ slog.Handler }

// Handle passes a record on.
func (h formHandler) Handle(ctx context.Context, r slog.Record) error {
	finding, option := false, ""
	r.Attrs(func(a slog.Attr) bool {
		finding = finding || a.Key == "code" && a.Value.String() == core.LogCheck.String()
		if a.Key == "option" {
			option = field(a.Value.String())
		}
		return true
	})
	if !finding {
		return h.Handler.Handle(ctx, r)
	}
	said := slog.NewRecord(r.Time, r.Level, told(option, r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "place" {
			return true // it is in this program
		}
		if a.Value.Kind() == slog.KindString {
			text := told(option, a.Value.String())
			if a.Key == "option" {
				text = option
			}
			a.Value = slog.StringValue(text)
		}
		said.AddAttrs(a)
		return true
	})
	return h.Handler.Handle(ctx, said)
}

// WithAttrs implements slog.Handler.
func (h formHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return formHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h formHandler) WithGroup(name string) slog.Handler {
	return formHandler{h.Handler.WithGroup(name)}
}
