// SPDX-License-Identifier: Apache-2.0

package zmq

import "strconv"

// maxShown is how much of a foreign name a text shows.
const maxShown = 80

// shown is a foreign name for people: as it is, or quoted where it is long or
// holds what cannot be seen.
func shown(name string) string {
	if len(name) > maxShown {
		return strconv.Quote(name[:maxShown] + "...")
	}
	if q := strconv.Quote(name); name == "" || q[1:len(q)-1] != name {
		return q
	}
	return name
}
