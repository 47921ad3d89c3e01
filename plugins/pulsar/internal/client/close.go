// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
)

// Close ends the client: its own connection at once, then the library with what is
// left of its consumers and producers. The library asks the broker for each of them and
// waits for the answer as long as an operation may take, so it is waited for until ctx
// ends, for at most 5 s: then the error is a *core.Fault, and the library ends by itself
// when its waits are over, for nothing can cut them. Further calls wait for the first.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	if closed := c.closed; closed != nil {
		c.mu.Unlock()
		select {
		case <-closed:
			return c.closeAs
		case <-ctx.Done():
			return &core.Fault{Code: core.FaultTimeout, Message: "close Pulsar's client: " + context.Cause(ctx).Error()}
		}
	}
	c.closed, c.closing = make(chan struct{}), true
	started := c.started
	c.mu.Unlock()
	defer close(c.closed)
	c.state.freeze()
	c.pool.close()
	c.stop()
	if started {
		<-c.done
	}
	c.pool.running.Wait()
	c.closeAs = c.closeLibrary(ctx)
	return c.closeAs
}

func (c *Client) closeLibrary(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.times.parting, fmt.Errorf("no answer within %v", c.times.parting))
	defer cancel()
	closed := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(closed)
		c.library.Close()
	}()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
	}
	return &core.Fault{
		Code:    core.FaultTimeout,
		Message: fmt.Sprintf("close Pulsar's client: the broker has not answered for %v: %v", time.Since(began).Round(time.Millisecond), context.Cause(ctx)),
	}
}
