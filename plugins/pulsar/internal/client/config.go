// SPDX-License-Identifier: Apache-2.0

package client

import (
	"log/slog"
	"time"

	"github.com/longshore-go/longshore/core"
)

// The defaults of a Config.
const (
	DefaultConnectTimeout   = time.Minute
	DefaultOperationTimeout = 30 * time.Second
	DefaultConnections      = 1
)

// Config says whom a client connects to, and as whom.
type Config struct {
	// Address is the service URL, as ParseURL has read it.
	Address Address

	Token     core.Secret // a JSON web token; at most one of Token and TokenFile
	TokenFile string      // read at every connection, and when a broker asks for it again
	TLS       TLSFiles    // of an address with TLS

	ConnectTimeout   time.Duration // of the first connect, over all tries; 0 = DefaultConnectTimeout
	OperationTimeout time.Duration // of one request to a broker; 0 = DefaultOperationTimeout
	ListenerName     string        // of the brokers' advertised listeners, "" = their default
	Connections      int           // to each broker; 0 = DefaultConnections

	Log *slog.Logger // nil = nothing is logged
}

// TLSFiles name what TLS uses beyond the system's roots. They are read at every
// connection.
type TLSFiles struct {
	CA        string // PEM file with the authorities that are trusted, "" = the system's
	Cert, Key string // PEM files of the client's certificate, both or none; without a token they say who the client is
	AnyHost   bool   // the broker's certificate may be for another host: its authority alone is checked
}

func (c Config) withDefaults() Config {
	if c.ConnectTimeout <= 0 {
		c.ConnectTimeout = DefaultConnectTimeout
	}
	if c.OperationTimeout <= 0 {
		c.OperationTimeout = DefaultOperationTimeout
	}
	if c.Connections <= 0 {
		c.Connections = DefaultConnections
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = c.Log.With("server", c.Address.String())
	return c
}
