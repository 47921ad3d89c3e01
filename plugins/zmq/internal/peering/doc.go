// SPDX-License-Identifier: Apache-2.0

// Package peering keeps an endpoint's connections: it listens or dials, does
// handshakes, hands each peer to a function on a goroutine of its own, and dials
// again what was lost. It knows nothing of messages.
//
// # Life of a Peering
//
//  1. Start listens, or begins to dial. It waits for no peer.
//  2. Config.Serve runs once for each peer after its handshake, many at a time.
//  3. StopListening takes no further peers; those that are there stay.
//  4. Close lets the queues of peers run empty for Config.Linger, closes all
//     connections and waits for every goroutine.
package peering
