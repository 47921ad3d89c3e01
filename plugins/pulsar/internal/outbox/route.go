// SPDX-License-Identifier: Apache-2.0

package outbox

import "github.com/longshore-go/longshore/plugins/pulsar/internal/wire"

// route returns the partition of n that a message goes to, as Pulsar's client for Go
// chooses it by default, and that for Java but for half of the keys where n is no
// power of two: by the ordering key, else by the key. Messages without a key take
// turns: turn is the number of the one whose turn it is.
func route(m *wire.Outgoing, n int, turn uint32) (partition int, keyed bool) {
	switch {
	case n == 1:
		return 0, true
	case m.OrderingKey != "":
		return int(hash(m.OrderingKey) % uint32(n)), true //nolint:gosec // few, see client
	case m.Key != "":
		return int(hash(m.Key) % uint32(n)), true //nolint:gosec // as above
	}
	return int(turn % uint32(n)), false //nolint:gosec // as above
}

// hash is Java's String.hashCode, of bytes.
func hash(s string) uint32 {
	var h uint32
	for i := range len(s) {
		h = 31*h + uint32(s[i])
	}
	return h
}
