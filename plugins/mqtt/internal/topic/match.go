// SPDX-License-Identifier: Apache-2.0

package topic

// Matches reports whether a filter, without a share group, matches a topic (4.7).
// Wildcards at the beginning do not match topics that begin with $
// [MQTT-4.7.2-1]. It takes no memory.
func Matches[T ~string | ~[]byte](filter string, topic T) bool {
	if len(topic) > 0 && topic[0] == '$' && filter != "" && (filter[0] == '+' || filter[0] == '#') {
		return false
	}
	f, t := 0, 0
	for {
		if f < len(filter) && filter[f] == '#' {
			return true
		}
		fe := end(filter, f)
		te := end(topic, t)
		if level := filter[f:fe]; level != "+" && level != string(topic[t:te]) {
			return false
		}
		switch {
		case te == len(topic):
			// a/# matches a as well (4.7.1.2)
			return fe == len(filter) || filter[fe:] == "/#"
		case fe == len(filter):
			return false
		}
		f, t = fe+1, te+1
	}
}

// end is where the level that begins at from ends.
func end[T ~string | ~[]byte](s T, from int) int {
	for from < len(s) && s[from] != '/' {
		from++
	}
	return from
}

// Overlap reports whether there is a topic that both filters match. Share groups
// are not part of them.
func Overlap(a, b string) bool {
	if special(a) != special(b) && (leadingWildcard(a) || leadingWildcard(b)) {
		return false
	}
	i, j := 0, 0
	for {
		if a[i:] == "#" || b[j:] == "#" {
			return true
		}
		ie, je := end(a, i), end(b, j)
		x, y := a[i:ie], b[j:je]
		if x != y && x != "+" && y != "+" {
			return false
		}
		switch {
		case ie == len(a) && je == len(b):
			return true
		case ie == len(a), je == len(b):
			empty := i == 0 && (x == "" || y == "") // what both match is no topic
			return a[ie:]+b[je:] == "/#" && !empty
		}
		i, j = ie+1, je+1
	}
}

// special reports whether a filter matches topics that begin with $.
func special(f string) bool { return f != "" && f[0] == '$' }

func leadingWildcard(f string) bool { return f != "" && (f[0] == '+' || f[0] == '#') }
