// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"context"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
)

// subscription is one who receives what comes for a filter. Receiving and settling
// are its receiver's.
type subscription struct {
	*intake.Receiver
	conn       *conn
	connection *connection
	route      *route
	reader     reader
	qos        int // granted
}

// Profiles are the capabilities of its deliveries, by the QoS that the server has
// granted and whether it keeps the session.
func (s *subscription) Profiles() []core.Capabilities {
	return s.reader.profiles(s.qos, s.conn.endpoint.kept() && s.connection.Kept())
}

// Close ends it. What it has not settled stays as it is; the server is asked for
// no more, unless the session is kept.
func (s *subscription) Close(context.Context) error {
	s.Receiver.Close()
	s.conn.leave(s.route)
	return nil
}
