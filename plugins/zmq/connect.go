// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"context"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// Connect refuses: no socket is opened yet.
func (e *endpoint) Connect(context.Context, []byte) (pluginapi.Conn, error) {
	return nil, &core.Fault{Code: core.FaultUnsupported, Message: "connect endpoint " + e.name + ", which " + e.does()}
}
