// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
	"time"

	"github.com/longshore-go/longshore/pluginapi/plugintest"
)

// The built plugin keeps the promises of the protocol. It talks to itself: what is
// published to a stream comes back through the group. LONGSHORE_CARD names a file
// for the card.
func TestConformance(t *testing.T) {
	t.Setenv("CGO_ENABLED", "0") // of the programs that are built, so that what they import is compiled once
	s := startServer(t, "--appendonly", "yes", "--appendfsync", "no")
	var opts []plugintest.Option
	if card := os.Getenv("LONGSHORE_CARD"); card != "" {
		opts = append(opts, plugintest.Card(card))
	}
	plugintest.Run(t, plugintest.Subject{
		Path:       plugintest.Build(t, "redis", "."),
		Settings:   map[string]any{"address": s.address(), "hold": "2s", "durable": true, "delete_acked": true},
		Disconnect: s.disconnect,
		Restart:    s.restart,
		Late:       1500 * time.Millisecond, // less than the hold: what comes back with its end was not given back
	}, opts...)
}
