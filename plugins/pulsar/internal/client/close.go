// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	"github.com/longshore-go/longshore/core"
)

// Close ends the client and all its connections at once: whoever is registered with one
// is told so. It returns when that is done. The error is a *core.Fault where ctx ends
// before; the rest is done all the same. Further calls wait for the first.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	if !c.closing {
		c.closing = true
		go c.close(c.started)
	}
	c.mu.Unlock()
	select {
	case <-c.closed:
		return nil
	case <-ctx.Done():
		return &core.Fault{Code: core.FaultTimeout, Message: "close Pulsar's client: " + context.Cause(ctx).Error()}
	}
}

func (c *Client) close(started bool) {
	defer close(c.closed)
	c.state.freeze()
	c.pool.close()
	c.stop()
	if started {
		<-c.done
	}
	c.pool.running.Wait()
}
