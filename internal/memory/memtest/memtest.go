// SPDX-License-Identifier: Apache-2.0

// Package memtest starts memory brokers for tests and builds the plugin that
// dials them.
package memtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/internal/programtest"
)

// Bench is a broker with what a test needs to attach its plugin.
type Bench struct {
	*memory.Broker
	Path     string            // of the plugin's binary
	Address  string            // of the broker's socket
	Settings settings.Settings // of an endpoint; With and WithDestination give it capabilities
}

// Start returns a broker that listens on a socket and is closed at the end of
// the test, which fails when the broker's account does not add up.
func Start(tb testing.TB) *Bench {
	tb.Helper()
	b := Broker(tb)
	// A test's own folder can be too long for a socket.
	dir, err := os.MkdirTemp("", "ls-mem-")
	if err != nil {
		tb.Fatalf("make the broker's folder: %v", err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	address := filepath.Join(dir, "broker")
	if err := b.Listen(address); err != nil {
		tb.Fatal(err)
	}
	return &Bench{Broker: b, Path: Plugin(tb), Address: address, Settings: settings.Settings{Address: address}}
}

// Broker returns a broker for transports in the test's own process.
func Broker(tb testing.TB) *memory.Broker {
	tb.Helper()
	b := memory.New()
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Errorf("close the memory broker: %v", err)
		}
		if err := b.Account().Check(); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// Plugin returns the path of the memory plugin's binary.
func Plugin(tb testing.TB) string {
	tb.Helper()
	return programtest.Path(tb, "github.com/longshore-go/longshore/internal/memory/longshore-transport-memory")
}
