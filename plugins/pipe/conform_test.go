// SPDX-License-Identifier: Apache-2.0

package pipe_test

import (
	"testing"

	"github.com/longshore-go/longshore/internal/programtest"
	"github.com/longshore-go/longshore/pluginapi/plugintest"
	"github.com/longshore-go/longshore/plugins/pipe/settings"
)

// With loopback a pipe talks to itself.
func TestConformance(t *testing.T) {
	t.Parallel()
	plugintest.Run(t, plugintest.Subject{
		Path:     programtest.Path(t, "github.com/longshore-go/longshore/plugins/pipe/longshore-transport-pipe"),
		Settings: settings.Settings{Loopback: true},
	})
}
