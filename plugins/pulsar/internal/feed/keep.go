// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/wait"
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
		p.said = false
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
	limit := p.feed.times.closing
	if m.mute {
		limit = p.feed.times.answers
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	m.close(ctx)
}

// lose says that the partition is read no more, where the feed goes on.
func (p *Partition) lose() {
	select {
	case p.feed.batches <- p.mark(p.epoch.Load(), false):
	case <-p.feed.ctx.Done():
	}
}

// watch returns when the consumer has to be replaced: with a seek that it is to carry
// out before, or when the partition is to be read no more. A new consumer is soon asked
// whether it lives: a broker that closes it right behind its answer to the subscribe, as
// when a topic is unloaded twice, says so before the library listens for it.
func (p *Partition) watch(m *member) *seek {
	f := p.feed
	proof := time.NewTimer(min(f.times.first, f.Discovery))
	defer proof.Stop()
	proving := false
	for {
		select {
		case <-p.ctx.Done():
			return nil
		case <-m.lost:
			return nil
		case s := <-p.seeks:
			return s
		case over := <-m.doubted:
			if p.forgotten(m, over) {
				return nil
			}
		case <-proof.C:
			if proving {
				f.Log.Info("Pulsar consumer is made anew: the broker does not answer it", "subscription", f.Subscription, "topic", p.Scope)
				return nil
			}
			proving = true
			m.prove()
			proof.Reset(f.times.proof)
		case err := <-m.proved:
			if err != nil {
				f.Log.Info("Pulsar consumer is made anew", "subscription", f.Subscription, "topic", p.Scope, "error", err)
				return nil
			}
			proving = false
			proof.Reset(f.Discovery)
		}
	}
}

// forgotten looks after acks without an answer, until they are over. A broker that sends
// a consumer away drops those that are under way, and the library waits for their answer
// as long as an operation may take and hears of nothing else. So where the broker
// answers us meanwhile, the consumer is lost. Where it does not, the connection will end.
func (p *Partition) forgotten(m *member, over <-chan struct{}) bool {
	f := p.feed
	for {
		ctx, cancel := context.WithTimeout(p.ctx, f.times.doubt)
		_, err := f.Client.Existing(ctx, p.Topic)
		cancel()
		select {
		case <-over:
			return false
		case <-m.lost:
			return true
		default:
		}
		if err == nil || !client.Explain("", err).Transient {
			f.Log.Info("Pulsar consumer is made anew: its acks are not answered", "subscription", f.Subscription, "topic", p.Scope)
			m.mute = true
			m.lose()
			return true
		}
		if !wait.For(p.ctx, f.times.doubt) {
			return true
		}
	}
}

// renew makes a new consumer, as often as it takes. It returns nil when the partition
// is to be read no more, or the subscription has ended.
func (p *Partition) renew() *member {
	f := p.feed
	if p.epoch.Load() > 0 && !wait.For(p.ctx, f.times.settle) {
		return nil
	}
	refused := 0
	for wait := f.times.retry; ; wait = min(2*wait, f.times.retryMost) {
		m, err := p.again()
		if err == nil {
			p.join(m)
			return m
		}
		if p.ctx.Err() != nil {
			return nil
		}
		why := client.Explain(fmt.Sprintf("subscribe to %s as %q", p.Scope, f.Subscription), err)
		switch {
		case why.Code == core.FaultNotFound:
			p.beginEarliest()
			if !p.named {
				return nil
			}
		case !why.Transient:
			if refused++; refused == refusals {
				f.end(why)
				<-p.ctx.Done()
				return nil
			}
		default:
			refused = 0
		}
		p.say(why)
		p.wait(wait)
	}
}

// say logs why the partition cannot be read for now, once until it can.
func (p *Partition) say(why *core.Fault) {
	if up, _ := p.feed.Client.Up(); up && !p.said {
		p.said = true
		p.feed.Log.Warn("Pulsar topic cannot be read for now", "subscription", p.feed.Subscription, "topic", p.Scope, "error", why)
	}
}

// again makes a new consumer. It looks the topic up before: the library would wait for
// the whole operation timeout, whatever the reason, and make a topic that is gone.
func (p *Partition) again() (*member, error) {
	n, err := p.feed.Client.Existing(p.ctx, p.Topic)
	if err != nil {
		return nil, err
	}
	there := p.Topic.Partition < max(n, topic.NoPartition+1)
	if there && p.Topic.Partition != topic.NoPartition && p.epoch.Load() > 0 {
		// Its topic outlives it while both are deleted.
		there, err = p.listed()
	}
	switch {
	case err != nil:
		return nil, err
	case !there:
		return nil, &core.Fault{Code: core.FaultNotFound, Message: "the topic has no such partition any more"}
	}
	return p.feed.subscribe(p.ctx, p)
}

// listed reports whether the partition is listed, or who knows: who may read a topic
// may not always list those of its namespace.
func (p *Partition) listed() (bool, error) {
	there, err := p.feed.lists.has(p.ctx, p.feed.Client, p.Topic)
	if err != nil && p.ctx.Err() == nil && !client.Explain("", err).Transient {
		return true, nil
	}
	return there, err
}

// wait waits, and for as long as the link is down, whatever d says.
func (p *Partition) wait(d time.Duration) {
	if !wait.For(p.ctx, d) {
		return
	}
	for {
		up, changed := p.feed.Client.Up()
		if up {
			return
		}
		select {
		case <-changed:
		case <-p.ctx.Done():
			return
		}
	}
}
