// SPDX-License-Identifier: Apache-2.0

package message

// few is up to how many names are looked through one by one. Foreign messages have as
// many as they like.
const few = 32

// places is where names stand in a list that is being made. The zero value is for an
// empty one, or one that has few.
type places struct{ at map[string]int }

// place is where a name stands in a list, or is to be appended.
func place[T any](p *places, list []T, name string, nameOf func(*T) string) (at int, again bool) {
	if p.at == nil {
		for i := range list {
			if nameOf(&list[i]) == name {
				return i, true
			}
		}
		if len(list) < few {
			return len(list), false
		}
		p.at = make(map[string]int, 2*few)
		for i := range list {
			p.at[nameOf(&list[i])] = i
		}
	}
	if at, again = p.at[name]; !again {
		at = len(list)
		p.at[name] = at
	}
	return at, again
}
