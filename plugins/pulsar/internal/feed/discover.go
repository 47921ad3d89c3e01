// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"slices"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// discover looks for partitions and topics until the feed ends. What it finds begins
// at the earliest message, so that nothing is missed that was published before; what
// fails is looked for again the next time.
func (f *Feed) discover() {
	tick := time.NewTicker(f.Discovery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-tick.C:
		}
		if up, _ := f.Client.Up(); !up {
			continue
		}
		err := f.look(f.ctx)
		if err != nil && !failing && f.ctx.Err() == nil {
			f.Log.Warn("cannot look for new partitions and topics", "subscription", f.Subscription, "error", err)
		}
		failing = err != nil
	}
}

// look looks once. One topic that fails does not keep it from the others.
func (f *Feed) look(ctx context.Context) error {
	var failed error
	if f.Pattern != nil {
		failed = f.match(ctx, true)
	}
	for _, t := range f.following() {
		if t.Name.Partition != topic.NoPartition {
			continue
		}
		n, err := f.Client.Existing(ctx, t.Name)
		switch {
		case err == nil:
			f.reconcile(t, n, true)
		case client.Explain("", err).Code != core.FaultNotFound: // else its partitions wait for it
			failed = client.Explain(t.Name.String(), err)
		}
	}
	return failed
}

// match follows the topics that match the pattern, and no others.
func (f *Feed) match(ctx context.Context, earliest bool) error {
	listed, err := f.Client.Topics(ctx, f.Pattern.NamespacePath())
	if err != nil {
		return err
	}
	for _, t := range f.following() {
		if !t.named && !slices.Contains(listed, t.Name) {
			f.leave(t)
		}
	}
	var failed error
	for _, n := range listed {
		if !f.Pattern.Matches(n) || f.follows(n) {
			continue
		}
		partitions, err := f.Client.Existing(ctx, n)
		if err != nil {
			if client.Explain("", err).Code != core.FaultNotFound { // else it is gone already
				failed = client.Explain(n.String(), err)
			}
			continue
		}
		f.reconcile(f.follow(n), partitions, earliest)
	}
	return failed
}

func (f *Feed) following() []*followed {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*followed, 0, len(f.topics))
	for _, t := range f.topics {
		all = append(all, t)
	}
	return all
}

func (f *Feed) follows(n topic.Name) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.topics[n]
	return ok
}

// follow begins to look at a topic that the pattern has found.
func (f *Feed) follow(n topic.Name) *followed {
	t := &followed{Topic: Topic{Name: n, As: n.String()}}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.topics[n] = t
	return t
}

// leave ends that a topic is read, for it is gone.
func (f *Feed) leave(t *followed) {
	f.Log.Info("Pulsar topic is gone", "subscription", f.Subscription, "topic", t.Name.String())
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.topics, t.Name)
	for n, p := range f.partitions {
		if n.Base() == t.Name {
			p.cancel()
		}
	}
}

// forget removes a partition that is read no more.
func (f *Feed) forget(p *Partition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.partitions[p.Topic] == p {
		delete(f.partitions, p.Topic)
		f.count.Store(int64(len(f.partitions)))
	}
}

// reconcile reads the partitions that a topic has, 0 = it is not partitioned, and no
// others.
func (f *Feed) reconcile(t *followed, count int, earliest bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return
	}
	whole := t.Name.Partition == topic.NoPartition
	wanted := map[topic.Name]bool{}
	if !whole || count == 0 {
		wanted[t.Name] = true
	} else {
		for i := range count {
			wanted[t.Name.At(i)] = true
		}
	}
	for n, p := range f.partitions {
		// One that has a consumer is there, whatever is said of its topic: partitions
		// outlive it where somebody has made them again while it was deleted.
		if whole && n.Base() == t.Name && !wanted[n] && p.current() == nil {
			p.cancel()
		}
	}
	for n := range wanted {
		if f.partitions[n] != nil {
			continue
		}
		p := f.add(n, t, earliest)
		if f.running {
			f.Log.Info("Pulsar partition is read from now on", "subscription", f.Subscription, "topic", p.Scope)
			f.keepers.Go(p.keep)
		}
	}
}
