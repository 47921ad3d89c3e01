// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
)

// Send gives a message to the next peer in turn that has room and returns that
// peer. It waits for one until ctx ends, and for Config.Wait while there is none
// at all; then it returns why not, and the ticket is not answered. No other peer
// gets the message: when this one is lost before anything of it is written, the
// ticket is refused, before Detach returns.
func (p *Push) Send(ctx context.Context, m *core.Message, t outq.Ticket) (*peering.Peer, *core.Fault) {
	t.Bound = true
	start := time.Now()
	limit := time.NewTimer(p.config.Wait)
	defer limit.Stop()
	for {
		peer, changed, deadline, f := p.try(m, t, start)
		if peer != nil || f != nil {
			return peer, f
		}
		var late <-chan time.Time
		if !deadline.IsZero() {
			limit.Reset(time.Until(deadline))
			late = limit.C
		}
		select {
		case <-changed:
		case <-late:
		case <-ctx.Done():
			return nil, canceled(m.Name, context.Cause(ctx))
		}
	}
}

// try gives the message to a peer, or returns what to wait for, and until when.
func (p *Push) try(m *core.Message, t outq.Ticket, start time.Time) (*peering.Peer, <-chan struct{}, time.Time, *core.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return nil, nil, time.Time{}, closed(m.Name)
	}
	if p.holding == 0 && p.backlog.len() == 0 {
		if peer := p.place(m, nil, t); peer != nil {
			return peer, nil, time.Time{}, nil
		}
	}
	var deadline time.Time
	if len(p.members) == 0 {
		deadline = p.backlog.deadline(&pending{at: start})
		if !deadline.After(time.Now()) {
			return nil, nil, deadline, noPeer("peer", p.config.Address(), m.Name, p.config.Wait)
		}
	}
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return nil, p.changed, deadline, nil
}

// tellSenders lets those that wait in Send try again; p.mu is held.
func (p *Push) tellSenders() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}
