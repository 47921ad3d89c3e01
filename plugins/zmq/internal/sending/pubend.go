// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
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
		return fault.Passing(core.FaultUnavailable, "start the subscriber, or correct the address",
			"no connected subscriber at %s after %v", p.config.Address(), p.config.Wait)
	}
}

// Close takes nothing more and waits until all that waits is in the peers'
// queues or dropped, for Config.Linger and within ctx at most; the rest is
// refused. What is in the queues is written by outq's Finish.
func (p *Pub) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.config.Linger)
	defer cancel()
	p.mu.Lock()
	p.closing = true
	waits := p.pumping
	p.mu.Unlock()
	if waits {
		select {
		case <-p.drained:
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	p.closed = true
	left := p.backlog.takeAll()
	p.mu.Unlock()
	wake(p.wake)
	p.running.Wait()
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
