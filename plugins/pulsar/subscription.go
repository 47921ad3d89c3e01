// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/intake"
)

// subscription is one that is open. Receiving and settling are its intake's.
type subscription struct {
	*intake.Intake
	conn *conn
}

// Subscribe opens a subscription, and waits until the brokers have all of its
// consumers. Requeues with a delay are held here.
func (c *conn) Subscribe(ctx context.Context, g pluginapi.Registration) (pluginapi.Subscription, error) {
	doing := "subscribe to " + shown(g.Name)
	r, found := c.endpoint.readRegistration(&g)
	if len(found) > 0 {
		return nil, refused(doing, found)
	}
	in, err := intake.Open(ctx, intake.Config{
		Feed: r.feed(c.endpoint, c.client), Profile: r.source(), AckTimeout: time.Duration(r.options.AckTimeout), Log: c.endpoint.log,
	})
	if err != nil {
		return nil, err // it says what was subscribed to
	}
	s := &subscription{Intake: in, conn: c}
	if !c.enter(s) {
		c.leave(s)
		_ = in.Close(ctx) // that the endpoint is closed says more
		return nil, fault.Closed(doing)
	}
	return pluginapi.Held(s, 0), nil
}

// Close ends it: acks that were given are flushed, and nothing else is said to the
// broker.
func (s *subscription) Close(ctx context.Context) error {
	defer s.conn.leave(s)
	return s.Intake.Close(ctx)
}

// enter makes a subscription one of those that are open, false where the endpoint is
// closed.
func (c *conn) enter(s *subscription) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.open[s] = struct{}{}
	}
	return !c.closed
}

func (c *conn) leave(s *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, s)
}
