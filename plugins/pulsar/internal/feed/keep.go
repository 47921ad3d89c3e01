// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// keep sees to it that the partition has a consumer that is alive, until it is to be
// read no more.
func (p *Partition) keep() {
	defer close(p.done)
	var moved *seek
	for {
		m := p.current()
		if m == nil {
			if m = p.renew(); m == nil {
				break
			}
		}
		moved.answer()
		moved = p.watch(m)
		if moved != nil {
			moved.err = m.move(moved)
		}
		p.part(m)
		p.close(m)
	}
	moved.answer()
	p.feed.forget(p)
	p.lose()
}

// close closes a consumer of the partition, within a limit.
func (p *Partition) close(m *member) {
	ctx, cancel := context.WithTimeout(context.Background(), p.feed.times.closing)
	defer cancel()
	m.close(ctx)
}

// lose says that the partition is read no more, where the feed goes on.
func (p *Partition) lose() {
	b := p.feed.spare.take()
	b.Partition, b.Lost, b.Epoch = p, true, p.epoch.Load()
	select {
	case p.feed.batches <- b:
	case <-p.feed.ctx.Done():
	}
}

// watch returns when the consumer has to be replaced: with a seek that it is to carry
// out before, or when the partition is to be read no more.
func (p *Partition) watch(m *member) *seek {
	f := p.feed
	proof := time.NewTimer(f.Discovery)
	defer proof.Stop()
	late := time.NewTimer(never)
	defer late.Stop()
	proving := false
	var upSince time.Time
	for {
		lost, failed := m.state()
		up, link := f.Client.Up()
		switch {
		case !up:
			upSince = time.Time{}
		case upSince.IsZero():
			upSince = time.Now()
		}
		seeks := p.seeks
		if !lost.IsZero() {
			seeks = nil // the library would hold it back
			if up {
				left := f.times.patience - min(time.Since(lost), time.Since(upSince))
				if failed >= failures || left <= 0 {
					f.Log.Info("Pulsar consumer is made anew: it does not come back", "subscription", f.Subscription, "topic", p.Scope)
					return nil
				}
				late.Reset(left)
			}
		}
		select {
		case <-p.ctx.Done():
			return nil
		case s := <-seeks:
			return s
		case <-m.changed:
		case <-link:
		case <-late.C:
		case <-proof.C:
			if proving {
				f.Log.Info("Pulsar consumer is made anew: it does not answer", "subscription", f.Subscription, "topic", p.Scope)
				return nil
			}
			if proving = lost.IsZero() && up; proving {
				m.prove()
				proof.Reset(f.times.proof)
			} else {
				proof.Reset(f.Discovery)
			}
		case err := <-m.proved:
			proving = false
			if err != nil && lost.IsZero() && up {
				f.Log.Info("Pulsar consumer is made anew: it is not known", "subscription", f.Subscription, "topic", p.Scope, "error", err)
				return nil
			}
			proof.Reset(f.Discovery)
		}
	}
}

// renew makes a new consumer, as often as it takes. It returns nil when the partition
// is to be read no more, or the subscription has ended.
func (p *Partition) renew() *member {
	f := p.feed
	wait := f.times.retry
	refused := 0
	for said := false; p.ctx.Err() == nil; {
		m, err := p.again()
		if err == nil {
			p.join(m)
			return m
		}
		if p.ctx.Err() != nil {
			return nil
		}
		why := client.Explain("subscribe to "+p.Scope, err)
		delay := wait
		wait = min(2*wait, f.times.retryMost)
		switch {
		case why.Code == core.FaultNotFound:
			p.beginEarliest()
			if !p.named {
				return nil
			}
		case why.Code == core.FaultConflict:
			delay = f.RetryDelay
		case !why.Transient:
			// Once more: a topic that is being deleted or made is refused for many reasons.
			if refused++; refused > 1 {
				f.end(why)
				<-p.ctx.Done()
				return nil
			}
		}
		if !said {
			said = true
			f.Log.Warn("Pulsar topic cannot be read for now", "subscription", f.Subscription, "topic", p.Scope, "error", why)
		}
		p.wait(delay)
	}
	return nil
}

// again makes a new consumer. It looks the topic up before: the library would wait for
// the whole operation timeout, whatever the reason, and make a topic that is gone.
func (p *Partition) again() (*member, error) {
	n, err := p.feed.Client.Existing(p.ctx, p.Topic)
	if err != nil {
		return nil, err
	}
	if p.Topic.Partition != topic.NoPartition && p.Topic.Partition >= n {
		return nil, &core.Fault{Code: core.FaultNotFound, Message: "the topic has no such partition any more"}
	}
	return p.feed.subscribe(p.ctx, p)
}

// wait waits, but not for longer than the link is down.
func (p *Partition) wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	up, link := p.feed.Client.Up()
	if up {
		link = nil
	}
	select {
	case <-t.C:
	case <-link:
	case <-p.ctx.Done():
	}
}
