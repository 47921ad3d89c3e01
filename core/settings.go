// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Secret is a setting that must never be shown. Printing, logging and
// marshalling give a fixed mark; Reveal gives the value.
type Secret struct{ value string }

// redacted is what a set Secret prints as.
const redacted = "[redacted]"

// NewSecret returns a Secret that holds value.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal returns the value.
func (s Secret) Reveal() string { return s.value }

// IsZero reports whether nothing is set.
func (s Secret) IsZero() bool { return s.value == "" }

// String returns a fixed mark, or "" when nothing is set.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return redacted
}

// GoString returns what String returns.
func (s Secret) GoString() string { return s.String() }

// Format writes what String returns, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue returns what String returns.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns what String returns.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText sets the value.
func (s *Secret) UnmarshalText(b []byte) error { s.value = string(b); return nil }

// Duration is a time.Duration that settings write as text ("1.5s").
type Duration time.Duration

// String returns the duration as text.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns the duration as text.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("read duration %q: write it like 250ms, 1.5s or 2m: %w", b, err)
	}
	*d = Duration(v)
	return nil
}
