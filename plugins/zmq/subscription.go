// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"context"
	"slices"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// subscription reads what peers send, and what this process publishes to it.
type subscription struct {
	conn   *conn
	socket *socket
	name   string
}

// Profiles say that nothing is acknowledged.
func (s *subscription) Profiles() []core.Capabilities {
	return []core.Capabilities{s.conn.endpoint.capabilities(s.name)}
}

// Receive waits for messages, as far as there is room. Copies that this process
// has published to itself come first.
func (s *subscription) Receive(ctx context.Context, room pluginapi.Room) (pluginapi.Batch, error) {
	return s.socket.intake.Receive(ctx, room)
}

// Settle refuses: nothing travels back to a sender.
func (s *subscription) Settle(_ context.Context, vs []pluginapi.Verdict) []pluginapi.Result {
	return slices.Repeat([]pluginapi.Result{{Status: pluginapi.ResultUnsupported}}, len(vs))
}

// StopIntake ends reading. Replies to requests that are handled leave still.
func (s *subscription) StopIntake() { s.socket.stop() }

// Close ends the subscription and disconnects its peers. Those that may be
// waiting for replies stay until the endpoint is closed.
func (s *subscription) Close(ctx context.Context) error {
	s.conn.leave(s)
	if err := s.socket.leave(ctx); err != nil {
		return faultOf("close subscription "+shown(s.name), err)
	}
	return nil
}
