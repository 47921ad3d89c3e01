// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// URL is the address of a server. Printed or logged it shows no password;
// string(u) has it.
type URL string

// String returns the URL with a mark in place of its password.
func (u URL) String() string {
	s := string(u)
	from := 0
	if i := strings.Index(s, "://"); i >= 0 {
		from = i + len("://")
	}
	end := len(s)
	if i := strings.IndexAny(s[from:], "/?#"); i >= 0 && !strings.Contains(s[from+i:], "@") {
		end = from + i
	}
	at := strings.LastIndexByte(s[from:end], '@')
	if at < 0 {
		return s
	}
	colon := strings.IndexByte(s[from:from+at], ':')
	if colon < 0 {
		return s
	}
	return s[:from+colon+1] + "[redacted]" + s[from+at:]
}

// GoString returns what String returns.
func (u URL) GoString() string { return u.String() }

// Format writes what String returns, whatever the verb.
func (u URL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.String()) }

// LogValue returns what String returns.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.String()) }
