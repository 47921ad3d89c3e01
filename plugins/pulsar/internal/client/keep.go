// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// stuckLimit is how many times the limit of silence a broker that sends may take nothing:
// one that throttles does not read for a while.
const stuckLimit = 4

// keep has the broker say whether it is there where nothing has come for a while. One
// that neither answers nor takes anything ends the connection, and so does one that takes
// nothing for long; and so does that nobody has wanted the connection for long.
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
		stuck := min(now-writing, c.socket.quiet())
		switch {
		case writing > 0 && (stuck > t.silence && quiet > t.silence || stuck > stuckLimit*t.silence):
			c.end(fmt.Errorf("%w for %v", errStuck, stuck.Round(time.Millisecond)))
		case writing > 0: // it takes some, or sends; a PING would wait behind the rest
		case quiet > t.silence:
			c.end(fmt.Errorf("%w for %v", errSilent, t.silence))
		case c.endIdle(t.idle):
		case quiet >= t.ping:
			c.out.shrink()
			c.Send(wire.AppendPing)
		}
	}
}

// endIdle ends a connection of the pool that nobody has wanted for as long, and reports
// whether it has.
func (c *Conn) endIdle(limit time.Duration) bool {
	c.mu.Lock()
	idle := c.err == nil && c.to.pooled() && len(c.consumers)+len(c.producers)+len(c.asked) == 0 && time.Since(c.used) > limit
	if idle {
		c.err = &LostError{c.host, errIdle}
	}
	c.mu.Unlock()
	if idle {
		c.hangUp()
	}
	return idle
}

// want takes note that somebody wants the connection. It reports false where it has ended
// because nobody did.
func (c *Conn) want() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = time.Now()
	return c.err == nil || c.err.Reason != errIdle //nolint:errorlint // the value itself
}
