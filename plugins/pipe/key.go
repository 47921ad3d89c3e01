// SPDX-License-Identifier: Apache-2.0

package pipe

import "github.com/longshore-go/longshore/core"

// maxKey is how long a stream key may be.
const maxKey = 249

// broadcast is the key of lines that name none: every subscription receives
// them.
const broadcast = "broadcast"

// validKey reports whether s can be a stream key.
func validKey[T string | []byte](s T) bool {
	if len(s) == 0 || len(s) > maxKey {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// keyFix is what to do about a bad key.
const keyFix = "use 1 to 249 letters, digits, dots, underscores and hyphens"

// keyFault is the fault of a bad key.
func keyFault(doing, key string) *core.Fault {
	return &core.Fault{
		Code:        core.FaultInvalid,
		Message:     doing,
		Diagnostics: []core.Diagnostic{{Path: "name", Message: quote(key) + " is no stream key", Fix: keyFix}},
	}
}
