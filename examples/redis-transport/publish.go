// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-go/longshore/pluginapi"
)

// Publish adds all messages in one round trip, in their order.
func (c *conn) Publish(ctx context.Context, msgs []pluginapi.Outgoing, done func(i int, r pluginapi.Receipt)) {
	pipe := c.client.Pipeline()
	adds := make([]*redis.StringCmd, len(msgs))
	for i, m := range msgs {
		adds[i] = pipe.XAdd(ctx, &redis.XAddArgs{Stream: m.Message.Name, Values: fieldsOf(m.Message)})
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, add := range adds {
		done(i, c.receipt(add))
	}
}

// receipt says what became of one message. An answer of the server is certain,
// and so is a connection that could not be made; anything else may have arrived.
func (c *conn) receipt(add *redis.StringCmd) pluginapi.Receipt {
	id, err := add.Result()
	if err == nil {
		return pluginapi.Receipt{Status: pluginapi.ReceiptConfirmed, Position: []byte(id)}
	}
	r := pluginapi.Receipt{Status: pluginapi.ReceiptRefused, Fault: c.endpoint.fault(err)}
	if sent(err) {
		r.Status = pluginapi.ReceiptUnknown
	}
	return r
}
