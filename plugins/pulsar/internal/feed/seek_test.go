// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// P-15: a seek to the beginning under load brings every message again, in all
// partitions; what was handed out before is stale.
func TestSeekToTheBeginning(t *testing.T) {
	t.Parallel()
	for _, typ := range []wire.SubscriptionType{wire.Shared, wire.Exclusive, wire.Failover, wire.KeyShared} {
		t.Run(typeName(typ), func(t *testing.T) {
			t.Parallel()
			b := broker.Broker(t)
			n := name(t)
			b.CreatePartitioned("public/default/"+n, 2)
			cfg := config(connected(t, b), "s", parsed(t, n))
			cfg.Type = typ
			f := opened(t, cfg)
			publish(t, producer(t, raw(t, b), n), "m", 300)
			eventually(t, "half of the messages", func() bool { return f.got("m") >= 150 })
			f.pause()
			f.forgetAll()
			if err := f.Seek(t.Context(), pluginapi.Position{Kind: pluginapi.PositionBeginning}); err != nil {
				t.Fatal(err)
			}
			f.read()
			eventually(t, "all messages again", func() bool { return f.got("m") == 300 })
			if backs := f.markers(func(b *Batch) bool { return b.Back }); backs != 2 {
				t.Errorf("%d partitions say that they are back, want 2", backs)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			for scope, order := range f.order {
				last := -1
				for _, payload := range order {
					if i := number(t, payload); i < last && typ != wire.Shared && typ != wire.KeyShared {
						t.Errorf("%s: %d after %d", scope, i, last)
					} else {
						last = i
					}
				}
			}
		})
	}
}

// A seek to the end leaves the backlog behind, one to a time what is older.
func TestSeekToTheEndAndToATime(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	n := parsed(t, name(t))
	f := opened(t, config(connected(t, b), "s", n))
	p := producer(t, raw(t, b), n.String())
	publish(t, p, "old-", 10)
	eventually(t, "the messages", func() bool { return f.got("old-") == 10 })
	time.Sleep(20 * time.Millisecond) // times of publishing are in milliseconds
	middle := time.Now()
	publish(t, p, "new-", 10)
	eventually(t, "the messages", func() bool { return f.got("new-") == 10 })

	sought(t, f, pluginapi.Position{Kind: pluginapi.PositionTime, Time: middle})
	eventually(t, "the newer half", func() bool { return f.got("new-") == 10 })
	if n := f.got("old-"); n > 0 {
		t.Errorf("%d messages from before the time", n)
	}
	f.ack.Store(false)
	sought(t, f, pluginapi.Position{Kind: pluginapi.PositionBeginning})
	eventually(t, "all", func() bool { return f.got("new-") == 10 && f.got("old-") == 10 })
	f.ack.Store(true)
	sought(t, f, pluginapi.Position{Kind: pluginapi.PositionEnd})
	publish(t, p, "last-", 1)
	eventually(t, "what is published behind the end", func() bool { return f.got("last-") == 1 })
	if f.got("old-")+f.got("new-") > 0 {
		t.Error("messages from before the end")
	}
}

// sought seeks while nothing is read, and forgets what was.
func sought(t *testing.T, f *fed, to pluginapi.Position) {
	t.Helper()
	f.pause()
	f.forgetAll()
	if err := f.Seek(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	f.read()
}

// An exact position is the message that comes next, in its own partition alone.
func TestSeekToAPosition(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	n := parsed(t, name(t))
	b.CreatePartitioned(n.String(), 2)
	f := opened(t, config(connected(t, b), "s", n))
	peer := raw(t, b)
	publish(t, producer(t, peer, n.At(0).String()), "zero-", 10)
	publish(t, producer(t, peer, n.At(1).String()), "one-", 10)
	eventually(t, "the messages", func() bool { return f.got("zero-") == 10 && f.got("one-") == 10 })
	f.mu.Lock()
	var at topic.ID
	for _, m := range f.held {
		if string(m.Payload) == "one-4" {
			at = f.from["one-4"].ID(m.ID)
		}
	}
	f.mu.Unlock()
	if at.Partition != 1 {
		t.Fatalf("one-4 has the id %v", at)
	}
	sought(t, f, pluginapi.Position{Kind: pluginapi.PositionExact, Value: topic.AppendPosition(nil, n.String(), at)})
	eventually(t, "what comes from the position on", func() bool { return f.got("one-") == 6 })
	if f.count("one-4") != 1 || f.count("one-3") != 0 || f.got("zero-") != 0 {
		t.Errorf("the position itself came %d times, the one before %d times, %d of the other partition", f.count("one-4"), f.count("one-3"), f.got("zero-"))
	}
}

// A seek waits for acks that are on their way: one that came behind it would take away
// what is to come again.
func TestSeekWaitsForAcks(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	p := proxy.Start(t, b.Address())
	n := parsed(t, name(t))
	f := opened(t, config(connectedTo(t, p.URL(), b.Token("admin")), "s", n))
	f.ack.Store(false)
	publish(t, producer(t, raw(t, b), n.String()), "m", 2)
	eventually(t, "the messages", func() bool { return f.got("m") == 2 })
	f.pause()
	part, one := f.from["m0"], whole(f.held[0])
	p.Stall(proxy.ToClient)
	acked, moved := make(chan error, 1), make(chan error, 1)
	go func() { acked <- part.Ack(one) }()
	p.Await(proxy.ToServer, proxy.Ack, 1)
	go func() { moved <- f.Seek(t.Context(), pluginapi.Position{Kind: pluginapi.PositionBeginning}) }()
	m := part.current()
	eventually(t, "no further acks", func() bool {
		more := m.enter()
		if more {
			m.exit()
		}
		return !more
	})
	if err := part.Ack(one); err == nil {
		t.Error("an ack behind the seek has no error")
	}
	if n := p.Count(proxy.ToServer, proxy.Seek); n > 0 {
		t.Error("the seek has left while an ack was out")
	}
	p.Resume()
	if err := errors.Join(within(t, "the ack", acked), within(t, "the seek", moved)); err != nil {
		t.Fatal(err)
	}
	f.forgetAll()
	f.read()
	eventually(t, "both messages again", func() bool { return f.got("m") == 2 })
}

// What cannot be a target is refused, and nothing moves.
func TestSeekIsRefused(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	n := parsed(t, name(t))
	f := opened(t, config(connected(t, b), "s", n))
	for _, tt := range []struct {
		name string
		to   pluginapi.Position
		code core.FaultCode
		want string
	}{
		{"no kind", pluginapi.Position{}, core.FaultInvalid, "kind 0"},
		{"no position", pluginapi.Position{Kind: pluginapi.PositionExact, Value: []byte("line 7")}, core.FaultInvalid, "no position of a Pulsar topic"},
		{"of another topic", pluginapi.Position{Kind: pluginapi.PositionExact, Value: topic.AppendPosition(nil, "persistent://public/default/other", topic.ID{Partition: -1, Batch: -1})}, core.FaultNotFound, "public/default/other"},
	} {
		err := f.Seek(t.Context(), tt.to)
		if fault, _ := errors.AsType[*core.Fault](err); fault == nil || fault.Code != tt.code || !strings.Contains(fault.Message, tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("given up"))
	if err := f.Seek(ctx, pluginapi.Position{Kind: pluginapi.PositionBeginning}); err == nil || !strings.Contains(err.Error(), "given up") {
		t.Errorf("cancelled: got %v", err)
	}
	publish(t, producer(t, raw(t, b), n.String()), "m", 3)
	eventually(t, "messages all the same", func() bool { return f.got("m") == 3 })
}
