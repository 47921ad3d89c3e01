// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// closeReserve is kept of a context's time for the ends of goroutines whose
// connections are closed, and granted to them where the context has ended.
const closeReserve = 100 * time.Millisecond

// Hurry ends what Close waits for queues and peers, also of one that is still to
// come.
func (p *Peering) Hurry() { p.hurry() }

// Close takes no further peers, lets the queues of those that are there run empty
// and waits until those have ended too, for Config.Linger and as long as ctx
// allows; then it closes all connections and waits for every goroutine. The error
// says that some did not end. Further calls wait for the first.
func (p *Peering) Close(ctx context.Context) error {
	p.StopListening()
	p.once.Do(func() { go p.end(ctx) })
	if p.hasEnded(ctx) {
		return nil
	}
	// ctx is over, which has closed the connections: their goroutines are ending.
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeReserve)
	defer cancel()
	if p.hasEnded(grace) {
		return nil
	}
	return fmt.Errorf("close the connections: %d of %d peers have not ended: %w", len(p.Peers()), p.counters.attached.Load(), context.Cause(ctx))
}

func (p *Peering) hasEnded(ctx context.Context) bool {
	select {
	case <-p.closed:
		return true
	case <-ctx.Done():
		return false
	}
}

// end is what the first Close does.
func (p *Peering) end(ctx context.Context) {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	peers := p.Peers()
	p.linger(ctx, peers)
	for _, peer := range peers {
		peer.Close(ErrClosed)
	}
	p.die()
	p.hurry()
	p.goroutines.Wait()
	close(p.closed)
}

// linger lets all queues run empty, side by side.
func (p *Peering) linger(ctx context.Context, peers []*Peer) {
	limit := p.config.Linger
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)-closeReserve)
	}
	if limit <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(p.waiting, cancel)()
	var all sync.WaitGroup
	for _, peer := range peers {
		all.Go(func() { peer.Out.Finish(ctx) })
	}
	all.Wait()
}
