// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"log/slog"
	"time"

	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// What is used where the Config says nothing.
const (
	DefaultHandshakeTimeout = 10 * time.Second
	DefaultMaxPeers         = 1024
)

// Config says how an endpoint meets its peers. Either Bind or Connect is set.
type Config struct {
	Bind    *Address
	Connect []Address // each is dialed, and dialed again when it is lost
	Resume  []byte    // what Resume of an earlier Peering has returned

	Handshake        zmtp.Options  // of each connection; Accepted is set there
	HandshakeTimeout time.Duration // of a handshake, when dialing of the dial too; 0 = DefaultHandshakeTimeout
	MaxPeers         int           // accepted connections at a time, those in their handshake included; 0 = DefaultMaxPeers
	Limits           outq.Limits   // of each peer's queue
	Linger           time.Duration // how long Close lets queues run empty and waits for the peers' ends; 0 = not at all
	Heartbeat        time.Duration // between two PINGs; a peer from which nothing came for three of them is closed; 0 = no PINGs

	Log *slog.Logger // nil = nothing is logged

	// Serve runs on the peer's own goroutine and returns when the peer has ended
	// or its Context has. It takes what its queue never wrote by Out.Abort, if
	// that is to be sent elsewhere. An error says why the peer has ended, nil and
	// an end of the connection that it left.
	Serve func(p *Peer) error
	// Link, if any, is called by the dialing side: up while at least one peer is
	// connected, and down first when one could not be reached. Calls come one
	// after the other.
	Link func(up bool, reason string)
}

// withDefaults fills in what is not said.
func (c Config) withDefaults() Config {
	if c.HandshakeTimeout <= 0 {
		c.HandshakeTimeout = DefaultHandshakeTimeout
	}
	if c.MaxPeers <= 0 {
		c.MaxPeers = DefaultMaxPeers
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
