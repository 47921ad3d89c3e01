// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/longshore-go/longshore/core"
)

// URL is the address of a server. Printed or logged it shows no password;
// string(u) has it.
type URL string

// String returns the URL with a mark in place of its password.
func (u URL) String() string {
	const scheme = "://"
	if s := string(u); strings.Contains(s, scheme) {
		return core.RedactURL(s)
	}
	return core.RedactURL(scheme + string(u))[len(scheme):]
}

// GoString returns what String returns.
func (u URL) GoString() string { return u.String() }

// Format writes what String returns, whatever the verb.
func (u URL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.String()) }

// LogValue returns what String returns.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.String()) }
