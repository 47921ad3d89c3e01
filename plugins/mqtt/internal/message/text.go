// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"unicode/utf8"
)

// readable reports whether b is UTF-8 without a null character, as a string of
// MQTT must be [MQTT-1.5.4-1, 1.5.4-2].
func readable(b []byte) bool {
	return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0
}

// replyTopic reports whether a readable text can be a Response Topic.
func replyTopic(s []byte) bool {
	return len(s) > 0 && !bytes.ContainsAny(s, "+#")
}

// printable reports whether a text has printable ASCII alone, as most have.
func printable[T ~string | ~[]byte](s T) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7F {
			return false
		}
	}
	return true
}
