// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"context"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// Connect opens the connections that the last Inspect asks for.
func (e *endpoint) Connect(context.Context, []byte) (pluginapi.Conn, error) {
	return nil, fault.Refusal(core.FaultUnsupported, "connect endpoint %s to %s as %s: there is no client", e.name, e.server.shown(), e.clientID(""))
}
