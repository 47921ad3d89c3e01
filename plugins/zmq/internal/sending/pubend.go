// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/core"
)

// Ready waits, where the endpoint dials, until a subscription has come from
// every address: what is published after that reaches them. It returns why not
// at the end of ctx or after Config.Wait.
func (p *Pub) Ready(ctx context.Context) error {
	if p.config.Dials == 0 {
		return nil
	}
	limit := time.NewTimer(p.config.Wait)
	defer limit.Stop()
	select {
	case <-p.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit.C:
		return &core.Fault{
			Code: core.FaultUnavailable, Transient: true,
			Message: "no connected subscriber at " + p.config.Address() + " after " + p.config.Wait.String(),
		}
	}
}

// expire answers what has waited for a subscription for long enough: refused
// where no peer is there, and unrouted where those that are want nothing.
func (p *Pub) expire() {
	p.mu.Lock()
	p.backlog.timer = nil
	var late []pending
	if !p.closed && !p.audience() {
		late = p.backlog.takeDue(time.Now())
		p.backlog.arm()
	}
	there := len(p.subscribers) > 0
	p.mu.Unlock()
	for i := range late {
		if there {
			tell(late[i].ticket, queued(false))
		} else {
			refuse(late[i].ticket, noPeer("subscriber", p.config.Address(), late[i].name(), p.config.Wait))
		}
	}
}

// Close takes nothing more and waits for somebody to subscribe where messages
// wait for that, for Config.Linger and within ctx at most; the rest is refused.
// What is in the peers' queues is written by outq's Finish.
func (p *Pub) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.config.Linger)
	defer cancel()
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	p.flush()
	select {
	case <-p.drained:
	case <-ctx.Done():
	}
	p.mu.Lock()
	p.closed = true
	p.backlog.disarm()
	left := p.backlog.takeAll()
	p.mu.Unlock()
	p.backlog.running.Wait()
	refuseClosed(left)
}

// Totals returns how many messages were dropped for subscribers whose queue had
// no room, and how many of those queued were not written before their peer was
// gone; each counts once for each peer.
func (p *Pub) Totals() (dropped, lost uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.losses.dropped, p.losses.lost
}
