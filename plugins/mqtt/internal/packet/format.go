// SPDX-License-Identifier: Apache-2.0

package packet

import "bytes"

// PayloadFormat is the Payload Format Indicator that goes with a content type
// (3.3.2.3.2): 1 for text/*, application/json and *+json, which are UTF-8, and 0
// for any other. Parameters behind a semicolon and the case do not matter.
func PayloadFormat(contentType []byte) byte {
	media, _, _ := bytes.Cut(contentType, []byte{';'})
	media = bytes.TrimSpace(media)
	if hasFold(media, "text/", "") || hasFold(media, "", "+json") || hasFold(media, "application/json", "") && len(media) == len("application/json") {
		return 1
	}
	return 0
}

// hasFold reports whether s has prefix and suffix, but for the case of letters.
func hasFold(s []byte, prefix, suffix string) bool {
	if len(s) < len(prefix)+len(suffix) {
		return false
	}
	return fold(s[:len(prefix)], prefix) && fold(s[len(s)-len(suffix):], suffix)
}

// fold reports whether s is lower, which is as long, but for the case of letters.
func fold(s []byte, lower string) bool {
	for i, c := range s {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
