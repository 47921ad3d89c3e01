// SPDX-License-Identifier: Apache-2.0

package servicetest

import (
	"io"
	"log/slog"
	"testing"

	"github.com/longshore-go/longshore/pluginapi"
)

// Configure configures an endpoint "in" of a transport that is called directly.
// It has stdio, nil = none, and logs all to log, nil = nowhere.
func Configure(t testing.TB, transport pluginapi.Transport, set any, stdio *pluginapi.Stdio, log io.Writer) pluginapi.Endpoint {
	t.Helper()
	raw, err := pluginapi.EncodeSettings(set)
	if err != nil {
		t.Fatal(err)
	}
	if log == nil {
		log = io.Discard
	}
	e, err := transport.Configure(pluginapi.Settings{
		Options: pluginapi.NewOptions(raw), Endpoint: "in", Generation: 1, Stdio: stdio,
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}
