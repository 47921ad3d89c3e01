// SPDX-License-Identifier: Apache-2.0

package hosttest

import "strings"

// Topics matches names as MQTT does, for [Matching]: + stands for one level, # at
// the end for all that are left, and $share/GROUP/ before the filter is not
// looked at.
func Topics(filter, name string) bool {
	if rest, shared := strings.CutPrefix(filter, "$share/"); shared {
		_, filter, _ = strings.Cut(rest, "/")
	}
	if strings.HasPrefix(name, "$") && !strings.HasPrefix(filter, "$") {
		return false
	}
	for {
		level, filterRest, filterMore := strings.Cut(filter, "/")
		if level == "#" {
			return !filterMore
		}
		word, nameRest, nameMore := strings.Cut(name, "/")
		if level != "+" && level != word {
			return false
		}
		if !nameMore {
			return !filterMore || filterRest == "#"
		}
		if !filterMore {
			return false
		}
		filter, name = filterRest, nameRest
	}
}
