// SPDX-License-Identifier: Apache-2.0

// Package sending decides which of an endpoint's peers get a message: one after
// the other (Push), all that have subscribed (Pub), or the one that is named
// (Router). What waits for one connection is package outq's.
//
// Each kind goes through the same phases: peers come by Attach and go by Detach,
// from the goroutines that read them; Close takes nothing more and sends what
// waits; after it the connections are closed, and what Detach gets back then is
// refused.
package sending

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
)

// DefaultWait is how long a message waits for a peer where nothing else is said
// (reference 3.1).
const DefaultWait = 5 * time.Second

// DefaultMost is how many bytes wait for all peers of a Pub together where
// nothing else is said: the queues of four that have stopped at different times.
const DefaultMost = 4 * outq.DefaultBytes

// Config is what all kinds are made of.
type Config struct {
	Address func() string // of the endpoint, as faults and log lines name it; nil = it has none
	Wait    time.Duration // how long a message waits for a peer; 0 = DefaultWait
	Linger  time.Duration // how long Close waits, within its context
	Dials   int           // how many addresses are dialed, 0 = the endpoint binds
	Memory  *outq.Memory  // of the endpoint's queues; nil = one of its own
	Most    int64         // bytes that wait for all peers of a Pub together; 0 = DefaultMost
	Log     *slog.Logger  // nil = none
}

func (c Config) withDefaults() Config {
	if c.Wait <= 0 {
		c.Wait = DefaultWait
	}
	if c.Memory == nil {
		c.Memory = &outq.Memory{}
	}
	if c.Address == nil {
		c.Address = func() string { return "" }
	}
	if c.Most <= 0 {
		c.Most = DefaultMost
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// causeOf is why a peer is gone, in words: what it was closed with, else what
// the reading loop ended with.
func causeOf(p *peering.Peer, err error) error {
	switch {
	case p.Cause() != nil:
		return p.Cause()
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return peering.ErrLeft
	}
	return err
}

// wake sends to a channel of capacity 1 that somebody may wait for.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
