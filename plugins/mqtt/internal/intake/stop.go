// SPDX-License-Identifier: Apache-2.0

package intake

import "github.com/longshore-go/longshore/core"

// Close ends everything: what waits is dropped, unanswered, and the totals are
// logged. Receivers are closed before; the links have ended.
func (in *Intake) Close() {
	in.mu.Lock()
	if in.closed {
		in.mu.Unlock()
		return
	}
	in.closed, in.live = true, nil
	for _, rt := range in.routes {
		in.abandon(&rt.box)
		for _, rc := range rt.members {
			in.abandon(&rc.box)
			rc.rouse()
		}
	}
	c := in.counters
	in.mu.Unlock()
	log := in.logger(core.LogNone)
	if c.Dropped+c.Unread > 0 {
		log.Warn("messages were lost that no server keeps", "dropped", c.Dropped, "unread", c.Unread)
	}
	if c.LeftOver+c.Strays+c.Expired > 0 {
		log.Info("messages were not delivered, or to others than they came for", "left_over", c.LeftOver, "strays", c.Strays, "expired", c.Expired)
	}
}

// abandon drops what waits in an inbox. in.mu is held.
func (in *Intake) abandon(b *inbox) {
	for b.n > 0 {
		it := b.pop()
		if it.handle == nil || it.handle.fate == fateOrphan || !in.kept {
			in.counters.Unread++
		}
		if it.handle != nil && it.handle.fate == fateQueued {
			it.handle.letGo()
		}
		in.drop(it)
	}
	b.close()
}

// dropOldest drops the first loose item. in.mu is held.
func (in *Intake) dropOldest(b *inbox) {
	for i := range b.n {
		if it := b.at(i); it.loose {
			if it.memory == nil {
				b.fresh--
			}
			in.counters.Dropped++
			in.lines.hit(lineDropped, it.publish.Topic, in.clock.now())
			in.drop(b.remove(i))
			return
		}
	}
}
