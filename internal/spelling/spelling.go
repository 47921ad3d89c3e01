// SPDX-License-Identifier: Apache-2.0

// Package spelling finds the name that was meant by one that nobody knows.
package spelling

import "strings"

// Nearest returns the candidate that got was most likely meant to be, or "".
func Nearest(got string, candidates []string) string {
	best, least := "", max(len(got)/3, 1)+1
	for _, c := range candidates {
		d := distance(plain(got), plain(c))
		if d < least {
			best, least = c, d
		}
	}
	return best
}

// plain makes names comparable: case and separators are what people mix up.
func plain(s string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
}

// distance counts the edits (insert, delete, replace, swap of neighbours) that
// turn a into b.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
