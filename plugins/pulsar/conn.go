// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	open   map[*subscription]struct{}
}

func newConn(e *endpoint, cl *client.Client) *conn {
	c := &conn{
		endpoint: e, client: cl, publisher: newPublisher(e, cl),
		stop: make(chan struct{}), open: make(map[*subscription]struct{}),
	}
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

// Close flushes what was published, and the acks of subscriptions that are open
// still, and takes its leave of the brokers, all within ctx.
func (c *conn) Close(ctx context.Context) ([]byte, error) {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	open := slices.Collect(maps.Keys(c.open))
	c.mu.Unlock()
	if again {
		return nil, nil
	}
	close(c.stop)
	c.watching.Wait()
	errs := make([]error, len(open)+1)
	var closing sync.WaitGroup
	for i, s := range open {
		closing.Go(func() { errs[i] = s.Close(ctx) })
	}
	closing.Go(func() { errs[len(open)] = c.publisher.out.Close(ctx) })
	closing.Wait()
	err := errors.Join(append(errs, c.client.Close(ctx))...)
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("close endpoint %s: %w: %w", c.endpoint.name, ctx.Err(), err)
	}
	return nil, fault.Of("close endpoint "+c.endpoint.name, err)
}

// refused is the fault of a registration that is refused.
func refused(doing string, found []pluginapi.Finding) *core.Fault {
	f := &core.Fault{Code: core.FaultInvalid, Message: doing}
	for i := range found {
		f.Diagnostics = append(f.Diagnostics, core.Diagnostic{Path: found[i].Option, Message: found[i].Message, Fix: found[i].Fix})
	}
	return f
}
