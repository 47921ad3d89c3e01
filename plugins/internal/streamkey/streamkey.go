// SPDX-License-Identifier: Apache-2.0

// Package streamkey says what a SeaStreamer stream key is, in files as on pipes.
package streamkey

// Max is the most bytes of a key.
const Max = 249

// Fix is what to do about a key that is none.
const Fix = "use 1 to 249 letters, digits, dots, underscores and hyphens"

// Valid reports whether k can be a stream key: 1 to Max letters, digits, dots,
// underscores and hyphens.
func Valid[T string | []byte](k T) bool {
	return len(k) > 0 && len(k) <= Max && Legal(k)
}

// Legal reports whether k holds nothing that a key may not hold. It may be a part
// of one.
func Legal[T string | []byte](k T) bool {
	for i := range len(k) {
		if !legal[k[i]] {
			return false
		}
	}
	return true
}

// legal says which bytes a key may have.
var legal = func() (set [256]bool) {
	for c := range set {
		set[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
	}
	return set
}()
