// SPDX-License-Identifier: Apache-2.0

package core

import "strings"

// RedactURL returns a URL with the mark of a [Secret] in place of its password, so
// that it can be shown. A text without "://" is returned as it is. A password that
// is not percent-encoded is covered as well.
func RedactURL(text string) string {
	const separator = "://"
	from := strings.Index(text, separator)
	if from < 0 {
		return text
	}
	from += len(separator)
	end := len(text)
	if i := strings.IndexAny(text[from:], "/?#"); i >= 0 && !strings.Contains(text[from+i:], "@") {
		end = from + i
	}
	at := strings.LastIndexByte(text[from:end], '@')
	colon := strings.IndexByte(text[from:end], ':')
	if at < 0 || colon < 0 || colon > at {
		return text
	}
	return text[:from+colon+1] + redacted + text[from+at:]
}
