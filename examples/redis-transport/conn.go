// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// oldest is the first major version of the server that the scripts work with.
const oldest = 7

// conn is the connected endpoint. client is for all that does not wait for
// messages; each subscription waits on a connection of its own.
type conn struct {
	endpoint *endpoint
	client   *redis.Client
	consumer string
	durable  bool // the server remembers what is pending
	link     link

	mu   sync.Mutex
	subs map[*subscription]bool
}

// learn asks the server for its version, and whether it is as durable as the
// settings say: what Inspect promised may be narrowed, never widened.
func (c *conn) learn(ctx context.Context) error {
	info, err := c.client.Info(ctx, "server", "persistence").Result()
	if err != nil {
		return c.endpoint.fault(err)
	}
	facts := make(map[string]string)
	for line := range strings.Lines(info) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			facts[k] = v
		}
	}
	version := facts["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err == nil && n < oldest {
		return &core.Fault{
			Code:    core.FaultUnsupported,
			Message: "redis at " + c.endpoint.settings.Address + " is version " + version + "; it must be 7.0 or newer",
		}
	}
	c.durable = c.endpoint.settings.Durable && facts["aof_enabled"] == "1"
	if c.endpoint.settings.Durable && !c.durable {
		c.endpoint.log.Warn("the settings say durable, and the server writes no append-only file; it counts as not durable")
	}
	return nil
}

// Subscribe makes stream and group where they are not there yet.
func (c *conn) Subscribe(ctx context.Context, r pluginapi.Registration) (pluginapi.Subscription, error) {
	o, err := c.endpoint.options(r)
	if err != nil {
		return nil, err
	}
	start := "0"
	if o.Start == "end" {
		start = "$"
	}
	err = c.client.XGroupCreateMkStream(ctx, r.Name, o.Group, start).Err()
	if err != nil && code(err) != "BUSYGROUP" { // that is: it exists
		return nil, c.endpoint.fault(err)
	}
	s := newSubscription(c, r, o.Group)
	c.mu.Lock()
	c.subs[s] = true
	c.mu.Unlock()
	return s, nil
}

// Close ends the subscriptions' consumers and the connections. There is nothing
// to flush: Publish and Settle return when the server has answered.
func (c *conn) Close(ctx context.Context) ([]byte, error) {
	c.link.stop()
	c.mu.Lock()
	var subs []*subscription
	for s := range c.subs {
		subs = append(subs, s)
	}
	c.mu.Unlock()
	for _, s := range subs {
		_ = s.Close(ctx)
	}
	return nil, c.client.Close()
}

// forget drops a subscription that has ended.
func (c *conn) forget(s *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.subs, s)
}
