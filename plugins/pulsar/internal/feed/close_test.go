// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// A feed can be closed at any moment: while it opens, reads, acks, seeks, is made anew,
// and while nobody takes its batches. Whatever runs then ends with it.
func TestCloseDuringEverything(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	p := proxy.Start(t, b.Address())
	n := parsed(t, name(t))
	b.CreatePartitioned(n.String(), 2)
	to := producer(t, raw(t, b), n.String())
	publish(t, to, "m", 300)
	c := connectedTo(t, p.URL(), b.Token("admin"))
	for i := range 40 {
		seed := rand.New(rand.NewPCG(1, uint64(i))) //nolint:gosec // the same each time
		cfg := config(c, fmt.Sprintf("s%d", i%4), n)
		cfg.ReceiverQueue = 1 + seed.IntN(100)
		cfg.Type = []wire.SubscriptionType{wire.Shared, wire.Exclusive, wire.Failover, wire.KeyShared}[i%4]
		at := time.Duration(seed.IntN(80)) * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		opening := time.AfterFunc(at, cancel)
		f, err := open(ctx, cfg, quick())
		opening.Stop()
		cancel()
		if err != nil {
			continue
		}
		var running sync.WaitGroup
		ended := make(chan struct{})
		if i%5 > 0 {
			running.Go(func() { consume(f, ended) })
		}
		if i%3 == 0 {
			running.Go(func() {
				within, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_ = f.Seek(within, pluginapi.Position{Kind: pluginapi.PositionBeginning})
			})
		}
		if i%7 == 0 {
			p.Cut()
		}
		<-time.After(at) // any moment will do
		within, done := context.WithTimeout(t.Context(), patience)
		if err := f.Close(within); err != nil {
			t.Errorf("feed %d: %v", i, err)
		}
		done()
		close(ended)
		running.Wait()
		if m := f.all(); len(m) > 0 && !errors.Is(f.ctx.Err(), context.Canceled) {
			t.Errorf("feed %d: %d partitions are left", i, len(m))
		}
	}
}

// consume takes and acks what comes.
func consume(f *Feed, ended <-chan struct{}) {
	for {
		select {
		case b := <-f.Batches():
			if len(b.Messages) > 0 {
				_ = b.Partition.Ack(whole(b.Messages...))
				b.Partition.Nack([]wire.MessageID{b.Messages[0].ID})
			}
			f.Release(b)
		case <-ended:
			return
		}
	}
}

// On Failover a feed hears whose turn it is: one has it, and the other when that leaves.
func TestTurns(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	n := parsed(t, name(t))
	var mu sync.Mutex
	turns := map[string]bool{} // the last that was heard
	feeds := map[string]*fed{}
	for _, name := range []string{"a", "b"} {
		cfg := config(connected(t, b), "s", n)
		cfg.Type, cfg.ConsumerName = wire.Failover, name
		cfg.Turn = func(p *Partition, active bool) {
			mu.Lock()
			defer mu.Unlock()
			if p.Scope != n.String() {
				t.Errorf("a turn of %s", p.Scope)
			}
			turns[name] = active
		}
		feeds[name] = opened(t, cfg)
	}
	active := func() string {
		mu.Lock()
		defer mu.Unlock()
		if turns["a"] == turns["b"] {
			return ""
		}
		if turns["a"] {
			return "a"
		}
		return "b"
	}
	eventually(t, "one whose turn it is", func() bool {
		mu.Lock()
		heard := len(turns)
		mu.Unlock()
		has := b.Stats(n.String()).Subscriptions["s"].Active
		return heard == 2 && has != "" && active() == has
	})
	first := active()
	publish(t, producer(t, raw(t, b), n.String()), "m", 10)
	eventually(t, "the messages", func() bool { return feeds[first].got("m") == 10 })
	feeds[first].pause()
	closed(t, feeds[first].Feed)
	eventually(t, "the other's turn", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return turns["a"] && turns["b"]
	})
}
