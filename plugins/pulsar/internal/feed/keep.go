// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
			if m = p.renew(moved == nil); m == nil {
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
		m.close(p.patience(m))
	}
	moved.answer()
	p.feed.forget(p)
	p.lose()
}

// patience is how long a consumer's close is waited for: not for long where the broker
// answers nothing else either.
func (p *Partition) patience(m *member) time.Duration {
	if m.mute {
		return p.feed.times.answers
	}
	return p.feed.times.closing
}

// lose says that the partition is read no more, where the feed goes on.
func (p *Partition) lose() {
	select {
	case p.feed.batches <- p.mark(p.epoch.Load(), false):
	case <-p.feed.ctx.Done():
	}
}

// watch returns when the consumer has to be replaced: with a seek that it is to carry
// out before, or when the partition is to be read no more. A loss is known at once; a
// broker that has forgotten a consumer without a word is found out by a question, which
// is asked now and then, and when acks have no answer.
func (p *Partition) watch(m *member) *seek {
	f := p.feed
	look := time.NewTimer(f.Discovery)
	defer look.Stop()
	asked := false
	prove := func() {
		if !asked {
			asked = true
			m.prove()
		}
	}
	for {
		select {
		case <-p.ctx.Done():
			return nil
		case <-m.life.Done():
			return nil
		case s := <-p.seeks:
			return s
		case <-m.flooded:
			f.Log.Info("Pulsar consumer is made anew", "subscription", f.Subscription, "topic", p.Scope, "error", errFlooded)
			m.pace.restart()
			return nil
		case <-m.doubted:
			prove()
		case <-look.C:
			p.unread.flush(p.log())
			prove()
		case err := <-m.proved:
			if err != nil && m.life.Err() == nil {
				f.Log.Info("Pulsar consumer is made anew", "subscription", f.Subscription, "topic", p.Scope, "error", err)
				m.mute = errors.Is(err, context.DeadlineExceeded)
				return nil
			}
			asked = false
			look.Reset(f.Discovery)
		}
	}
}

// log is the feed's, with the partition's name.
func (p *Partition) log() *slog.Logger {
	return p.feed.Log.With("subscription", p.feed.Subscription, "topic", p.Scope)
}

// renew makes a new consumer, as often as it takes, where the former was lost after a
// moment. It returns nil when the partition is to be read no more, or the subscription
// has ended.
func (p *Partition) renew(lost bool) *member {
	f := p.feed
	if lost && p.epoch.Load() > 0 && !wait.For(p.ctx, f.times.settle) {
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

// again makes a new consumer. It looks the topic up before, which creates nothing and
// says how many partitions it has now.
func (p *Partition) again() (*member, error) {
	n, err := p.feed.Client.Existing(p.ctx, p.Topic)
	switch {
	case err != nil:
		return nil, err
	case p.Topic.Partition >= max(n, topic.NoPartition+1):
		return nil, &core.Fault{Code: core.FaultNotFound, Message: "the topic has no such partition any more"}
	}
	return p.feed.subscribe(p.ctx, p)
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
