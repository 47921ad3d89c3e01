// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
)

// conn is the connected endpoint.
type conn struct {
	endpoint  *endpoint
	client    *client.Client
	publisher *publisher

	watching sync.WaitGroup
	stop     chan struct{} // closed by Close

	mu     sync.Mutex // of what follows
	closed bool
}

func newConn(e *endpoint, cl *client.Client) *conn {
	c := &conn{endpoint: e, client: cl, publisher: newPublisher(e, cl), stop: make(chan struct{})}
	c.watching.Go(c.watch)
	return c
}

// watch answers what waits to be published when the brokers have refused the
// endpoint for good. Subscriptions end by themselves then.
func (c *conn) watch() {
	select {
	case <-c.client.Fatal():
		c.publisher.out.Fail(c.client.Err())
	case <-c.stop:
	}
}

// ReportLink reports whether a broker can be reached.
func (c *conn) ReportLink(report func(pluginapi.LinkState)) {
	c.client.WatchLink(func(up bool, reason string) { report(pluginapi.LinkState{Up: up, Reason: reason}) })
}

// Subscribe opens a subscription.
func (c *conn) Subscribe(_ context.Context, g pluginapi.Registration) (pluginapi.Subscription, error) {
	doing := "subscribe to " + shown(g.Name)
	if _, found := c.endpoint.readRegistration(&g); len(found) > 0 {
		return nil, refused(doing, found)
	}
	return nil, fault.Refusal(core.FaultUnsupported, "%s: not built", doing)
}

// Close ends the connection.
func (c *conn) Close(ctx context.Context) ([]byte, error) {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.mu.Unlock()
	if again {
		return nil, nil
	}
	close(c.stop)
	c.watching.Wait()
	err := c.publisher.out.Close(ctx)
	return nil, errors.Join(err, c.client.Close(ctx))
}

// refused is the fault of a registration that is refused.
func refused(doing string, found []pluginapi.Finding) *core.Fault {
	f := &core.Fault{Code: core.FaultInvalid, Message: doing}
	for i := range found {
		f.Diagnostics = append(f.Diagnostics, core.Diagnostic{Path: found[i].Option, Message: found[i].Message, Fix: found[i].Fix})
	}
	return f
}
