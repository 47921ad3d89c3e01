// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// oneOf joins names for people: "a, b or c".
func oneOf(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
