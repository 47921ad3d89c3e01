// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"

	"github.com/longshore-go/longshore/pluginapi"
)

// How often the server is asked whether it is there.
const (
	pingUp   = time.Second
	pingDown = 250 * time.Millisecond
)

// link watches the connection to the server. One goroutine tells the host, so
// that states keep their order.
type link struct {
	cancel context.CancelFunc
	over   sync.WaitGroup
}

// ReportLink tells the state now, which is up, and every change from then on.
func (c *conn) ReportLink(report func(pluginapi.LinkState)) {
	report(pluginapi.LinkState{Up: true})
	ctx, cancel := context.WithCancel(context.Background())
	c.link.cancel = cancel
	c.link.over.Go(func() { c.watch(ctx, report) })
}

func (c *conn) watch(ctx context.Context, report func(pluginapi.LinkState)) {
	up := true
	timer := time.NewTimer(pingUp)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		err := c.client.Ping(ctx).Err()
		if ctx.Err() != nil {
			return
		}
		if now := err == nil; now != up {
			up = now
			state := pluginapi.LinkState{Up: up}
			if !up {
				state.Reason = c.endpoint.fault(err).Message
			}
			report(state)
		}
		timer.Reset(pause(up))
	}
}

func pause(up bool) time.Duration {
	if up {
		return pingUp
	}
	return pingDown
}

// stop returns when nothing is reported any more.
func (l *link) stop() {
	if l.cancel != nil {
		l.cancel()
	}
	l.over.Wait()
}
