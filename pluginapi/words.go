// SPDX-License-Identifier: Apache-2.0

package pluginapi

import "fmt"

// word returns the name of a value among names, whose first is that of 0.
func word[T ~uint8](v T, what string, names ...string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s %d", what, v)
}

// String returns the purpose in words.
func (p Purpose) String() string {
	return word(p, "purpose", "unspecified", "application", "retry", "dead letter", "reply")
}

// String returns the status in words.
func (s ReceiptStatus) String() string {
	return word(s, "receipt status", "unspecified", "confirmed", "refused", "unknown")
}

// String returns the status in words.
func (s ResultStatus) String() string {
	return word(s, "result status", "unspecified", "done", "stale", "unsupported", "failed")
}

// String returns the kind in words.
func (k PositionKind) String() string {
	return word(k, "position kind", "unspecified", "beginning", "end", "time", "exact")
}
