// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/longshore-go/longshore/core"
)

// URL is the address of a cluster. Printed or logged it does not show what stands
// before an @, where a secret may have been put by mistake; string(u) has it.
type URL string

// String returns the URL with a mark in place of what stands before its last @.
func (u URL) String() string {
	text := string(u)
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text
	}
	scheme, _, ok := strings.Cut(text[:at], "://")
	if scheme += "://"; !ok {
		scheme = ""
	}
	return scheme + core.NewSecret("x").String() + text[at:]
}

// GoString returns what String returns.
func (u URL) GoString() string { return u.String() }

// Format writes what String returns, whatever the verb.
func (u URL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.String()) }

// LogValue returns what String returns.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.String()) }
