// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// fresh is how long a list of topics is good for: all partitions that a broker has sent
// away look at the same one.
const fresh = 100 * time.Millisecond

// lists are the newest lists of topics, by namespace.
type lists struct {
	mu  sync.Mutex
	all map[string]*list
}

// list is one of them. Who has its turn uses it, and asks for all who wait.
type list struct {
	turn  chan struct{}
	names []topic.Name
	asked time.Time
}

func (l *lists) of(namespace string) *list {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]*list{}
	}
	of := l.all[namespace]
	if of == nil {
		of = &list{turn: make(chan struct{}, 1)}
		l.all[namespace] = of
	}
	return of
}

// has reports whether a namespace lists a topic, or a partition.
func (l *lists) has(ctx context.Context, c *client.Client, n topic.Name) (bool, error) {
	of := l.of(n.NamespacePath())
	select {
	case of.turn <- struct{}{}:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	defer func() { <-of.turn }()
	if now := time.Now(); now.Sub(of.asked) > fresh {
		names, err := c.Listed(ctx, n.NamespacePath())
		if err != nil {
			return false, err
		}
		of.names, of.asked = names, now
	}
	_, ok := slices.BinarySearchFunc(of.names, n, topic.Name.Compare)
	return ok, nil
}
