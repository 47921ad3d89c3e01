// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"io"
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// anyPort is an address of this machine with a port that is free.
const anyPort = "tcp://127.0.0.1:0"

// closed is an address that nobody listens on.
const closed = "tcp://127.0.0.1:1"

// configure configures an endpoint that logs to log, nil = nowhere.
func configure(t testing.TB, set settings.Settings, log io.Writer) pluginapi.Endpoint {
	t.Helper()
	raw, err := pluginapi.EncodeSettings(set)
	if err != nil {
		t.Fatal(err)
	}
	if log == nil {
		log = io.Discard
	}
	e, err := zmq.New().Configure(pluginapi.Settings{
		Options: pluginapi.NewOptions(raw), Endpoint: "in", Generation: 1,
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}
