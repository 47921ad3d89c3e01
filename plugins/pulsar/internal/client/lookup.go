// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// errDown is why nothing can be asked for.
var errDown = errors.New("no broker can be reached")

// Topics returns the persistent topics of a namespace, "tenant/name", in their order.
// Of a partitioned one it is the topic, not its partitions. Topics whose names cannot
// be read here are left out, with one line at Debug. Errors are *core.Fault.
func (c *Client) Topics(ctx context.Context, namespacePath string) ([]topic.Name, error) {
	names, err := c.Listed(ctx, namespacePath)
	if err != nil {
		return nil, err
	}
	for i := range names {
		names[i] = names[i].Base()
	}
	return slices.Compact(names), nil
}

// Listed is Topics with the partitions, which are topics of their own, in place of
// the topics that have them.
func (c *Client) Listed(ctx context.Context, namespacePath string) ([]topic.Name, error) {
	answer, err := c.ask(ctx, wire.TypeTopicsResponse, func(dst []byte, number uint64) []byte {
		return wire.AppendTopics(dst, number, namespacePath)
	})
	if err != nil {
		return nil, Explain(fmt.Sprintf("list the topics of namespace %q", namespacePath), err)
	}
	names := make([]topic.Name, 0, len(answer.Topics))
	unread := 0
	for _, s := range answer.Topics {
		n, err := topic.ParseListed(s)
		if err != nil {
			unread++
			continue
		}
		names = append(names, n)
	}
	if unread > 0 {
		c.config.Log.Debug("Pulsar topics left out: their names cannot be read", "namespace", namespacePath, "topics", unread)
	}
	slices.SortFunc(names, topic.Name.Compare)
	return names, nil
}

// Partitions returns how many partitions a topic has, 0 = it is not partitioned. It
// lets the broker create the topic, where the broker creates topics by
// itself: it may then have partitions. Errors are *core.Fault, which do not name the
// topic: what it is looked up for does.
func (c *Client) Partitions(ctx context.Context, name topic.Name) (int, error) {
	return c.partitions(ctx, name, true)
}

// Existing is Partitions, but it creates nothing: a topic that is not there is a fault
// with FaultNotFound, with brokers that can tell (from 4.0, and some before).
func (c *Client) Existing(ctx context.Context, name topic.Name) (int, error) {
	return c.partitions(ctx, name, false)
}

func (c *Client) partitions(ctx context.Context, name topic.Name, create bool) (int, error) {
	full := name.Base().String()
	answer, err := c.ask(ctx, wire.TypePartitionsResponse, func(dst []byte, number uint64) []byte {
		return wire.AppendPartitions(dst, number, full, create)
	})
	if err != nil {
		return 0, Explain("look up the topic", err)
	}
	if answer.Partitions > maxPartitions {
		return 0, &core.Fault{Code: core.FaultInternal, Message: fmt.Sprintf("look up the topic: it is to have %d partitions", answer.Partitions)}
	}
	return int(answer.Partitions), nil
}

// maxPartitions is the most partitions that are believed in. Each costs a consumer.
const maxPartitions = 1 << 16

// ask sends a request on the connection there is to the service URL.
func (c *Client) ask(ctx context.Context, want wire.Type, request func(dst []byte, number uint64) []byte) (wire.Command, error) {
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l == nil {
		return wire.Command{}, errDown
	}
	return l.Ask(ctx, want, request)
}

// limited bounds one operation.
func (c *Client) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.config.OperationTimeout, c.late)
}
