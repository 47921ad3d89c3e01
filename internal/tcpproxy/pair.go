// SPDX-License-Identifier: Apache-2.0

package tcpproxy

import (
	"bufio"
	"net"
	"sync"
	"sync/atomic"
)

// pair is a connection of a client, and the one to the broker for it.
type pair struct {
	p        *Proxy
	ends     [2]net.Conn // by the direction of what is written to them
	gone     chan struct{}
	once     sync.Once
	vanished atomic.Bool // for the client, the broker's machine
}

// close closes both ends.
func (c *pair) close() {
	c.once.Do(func() { close(c.gone) })
	for _, end := range c.ends {
		_ = end.Close() // closed twice at most
	}
}

// vanish closes the broker's end only.
func (c *pair) vanish() {
	c.vanished.Store(true)
	_ = c.ends[ToServer].Close()
}

// pass passes packets on in one direction until an end is closed.
func (c *pair) pass(d Direction) {
	from := c.ends[1-d]
	c.packets(d, bufio.NewReader(from))
	if c.vanished.Load() {
		if d == ToServer {
			discard(from)
			c.close()
		}
		return // the client's end stays open
	}
	c.close()
}

// packets passes packets on, until an end is closed or is to be.
func (c *pair) packets(d Direction, from *bufio.Reader) {
	for {
		packet, kind, err := c.p.read(from, c.p.Address())
		if err != nil {
			return
		}
		c.p.waits(d, c.gone)
		at, ends := c.p.passing(d, kind)
		switch {
		case ends && at == nowhere:
			continue
		case ends && at == Before:
			return
		case ends && at == Inside:
			_, _ = c.ends[d].Write(packet[:(len(packet)+1)/2]) // it is cut in any case
			return
		}
		if _, err := c.ends[d].Write(packet); err != nil {
			return
		}
		c.p.passed(d, kind)
		if ends {
			return
		}
	}
}
