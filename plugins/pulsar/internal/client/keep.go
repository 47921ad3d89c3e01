// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// keep has the broker say whether it is there where nothing has come for a while. One
// that answers nothing ends the connection, and so does one that takes nothing; and so
// does that nobody has wanted the connection for long.
func (c *Conn) keep() {
	t := c.client.times
	tick := time.NewTicker(t.ping)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-tick.C:
		}
		now := time.Since(c.began)
		quiet := now - time.Duration(c.heard.Load())
		writing := time.Duration(c.out.writing.Load())
		switch {
		case writing > 0 && now-writing > t.silence:
			c.end(fmt.Errorf("%w for %v", errStuck, t.silence))
		case writing > 0: // what it is sent arrives
		case quiet > t.silence:
			c.end(fmt.Errorf("%w for %v", errSilent, t.silence))
		case c.idle(t.idle):
			c.end(errIdle)
		case quiet >= t.ping:
			c.out.shrink()
			c.Send(wire.AppendPing)
		}
	}
}

// idle reports whether nobody has wanted a connection of the pool for as long.
func (c *Conn) idle(limit time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.to.pooled() && len(c.consumers)+len(c.producers)+len(c.asked) == 0 && time.Since(c.used) > limit
}

// want takes note that somebody wants the connection.
func (c *Conn) want() {
	c.mu.Lock()
	c.used = time.Now()
	c.mu.Unlock()
}
