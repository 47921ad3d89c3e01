// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"errors"
	"slices"
)

// The bounds of what one peer may subscribe to: the prefixes are kept in memory.
const (
	maxPrefixes    = 1 << 16
	maxPrefixBytes = 4 << 20
)

var errPrefixes = errors.New("the peer subscribes to more than 65536 prefixes or 4 MiB of them")

// filter is what one peer has subscribed to: prefixes, each as many times as it
// was asked for (RFC 29). Its zero value matches nothing.
type filter struct {
	counts  map[string]int
	lengths []length // ascending
	bytes   int
}

// length is how many prefixes have one length.
type length struct{ bytes, prefixes int }

// set enters or removes one subscription. To remove one that is not there does
// nothing.
func (f *filter) set(prefix []byte, on bool) error {
	n := f.counts[string(prefix)]
	switch {
	case !on && n > 1:
		f.counts[string(prefix)] = n - 1
	case !on && n == 1:
		delete(f.counts, string(prefix))
		f.resize(len(prefix), -1)
	case on && n > 0:
		f.counts[string(prefix)] = n + 1
	case on:
		if len(f.counts) >= maxPrefixes || f.bytes+len(prefix) > maxPrefixBytes {
			return errPrefixes
		}
		if f.counts == nil {
			f.counts = make(map[string]int)
		}
		f.counts[string(prefix)] = 1
		f.resize(len(prefix), 1)
	}
	return nil
}

// resize counts a prefix that came or went.
func (f *filter) resize(bytes, by int) {
	f.bytes += by * bytes
	i, found := slices.BinarySearchFunc(f.lengths, bytes, func(l length, n int) int { return l.bytes - n })
	if !found {
		f.lengths = slices.Insert(f.lengths, i, length{bytes: bytes})
	}
	if f.lengths[i].prefixes += by; f.lengths[i].prefixes == 0 {
		f.lengths = slices.Delete(f.lengths, i, i+1)
	}
}

// matches reports whether a name begins with one of the prefixes.
func (f *filter) matches(name string) bool {
	for _, l := range f.lengths {
		if l.bytes > len(name) {
			return false
		}
		if l.bytes == 0 || f.counts[name[:l.bytes]] > 0 {
			return true
		}
	}
	return false
}
