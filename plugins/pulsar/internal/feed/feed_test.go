// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// All partitions of all topics are subscribed to when Open returns (D22), each
// message comes once, in its partition's order, and acks reach the broker.
func TestReadsAllPartitions(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	plain, parts := name(t), name(t)
	b.CreatePartitioned("public/default/"+parts, 3)
	cfg := config(connected(t, b), "s", parsed(t, plain), parsed(t, parts))
	cfg.Earliest = false
	f := opened(t, cfg)
	peer := raw(t, b)
	publish(t, producer(t, peer, plain), "plain-", 50)
	publish(t, producer(t, peer, parts), "part-", 60)
	eventually(t, "all messages", func() bool { return f.got("plain-") == 50 && f.got("part-") == 60 })
	f.mu.Lock()
	for payload, n := range f.counts {
		if n != 1 {
			t.Errorf("%s came %d times", payload, n)
		}
	}
	scopes := len(f.order)
	if got := f.from["plain-0"]; got.As != plain || got.Topic.Partition != topic.NoPartition || got.Scope != "persistent://public/default/"+plain {
		t.Errorf("the plain topic's source is %+v", got.Source)
	}
	if got := f.from["part-0"]; got.As != parts || !strings.Contains(got.Scope, parts+"-partition-") {
		t.Errorf("the partitioned topic's source is %+v", got.Source)
	}
	for scope, order := range f.order {
		last := -1
		for _, payload := range order {
			n := number(t, payload)
			if n <= last {
				t.Errorf("%s: %d comes after %d", scope, n, last)
			}
			last = n
		}
	}
	f.mu.Unlock()
	if scopes != 4 {
		t.Errorf("messages came from %d partitions, want 4", scopes)
	}
	for _, p := range f.all() {
		b.AwaitBacklog(p.Scope, "s", 0)
	}
}

// What a message is nacked for comes again; what is not acked comes to the next feed.
func TestUnackedComesAgain(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	n := name(t)
	cfg := config(connected(t, b), "s", parsed(t, n))
	f := opened(t, cfg)
	f.ack.Store(false)
	publish(t, producer(t, raw(t, b), n), "m", 3)
	eventually(t, "the first delivery", func() bool { return f.got("m") == 3 })
	f.mu.Lock()
	first := f.held[0]
	p := f.from["m0"]
	f.mu.Unlock()
	p.Nack([]wire.MessageID{first.ID})
	eventually(t, "the second delivery of m0", func() bool { return f.count("m0") == 2 })
	f.pause()
	if err := f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Ack(whole(first)); err == nil {
		t.Error("an ack without a consumer has no error")
	}
	p.Nack([]wire.MessageID{first.ID}) // nothing
	again := opened(t, config(cfg.Client, "s", parsed(t, n)))
	eventually(t, "all again", func() bool { return again.got("m") == 3 })
}

// A topic is refused by name where the broker does not have it and makes none.
func TestOpenIsRefusedByName(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	_, err := tryOpen(t.Context(), t, config(connected(t, b), "s", parsed(t, "nobody/nowhere/orders")), quick())
	f, _ := errors.AsType[*core.Fault](err)
	if f == nil || f.Transient || !strings.Contains(f.Message, "persistent://nobody/nowhere/orders") {
		t.Errorf("got %v, transient: %t", err, f != nil && f.Transient)
	}
}

// S-PUL-28: a second Exclusive consumer waits until the first leaves.
func TestSecondExclusiveWaits(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	n := parsed(t, name(t))
	cfg := config(connected(t, b), "s", n)
	cfg.Type = wire.Exclusive
	first := opened(t, cfg)
	p := proxy.Start(t, b.Address())
	cfg.Client = connectedTo(t, p.URL(), b.Token("admin"))
	second := make(chan *fed, 1)
	go func() {
		f, err := tryOpen(t.Context(), t, cfg, quick())
		if err != nil {
			t.Error(err)
		}
		second <- f
	}()
	p.Await(proxy.ToServer, proxy.Subscribe, 3) // the tries before were refused
	if len(second) > 0 {
		t.Fatal("the second consumer has not waited")
	}
	first.pause()
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := within(t, "the second consumer", second)
	publish(t, producer(t, raw(t, b), n.String()), "m", 3)
	eventually(t, "its messages", func() bool { return f.got("m") == 3 })
	if n := strings.Count(f.log.String(), "cannot begin yet"); n != 1 || !strings.Contains(f.log.String(), "ConsumerBusy") {
		t.Errorf("the log has %d lines about it, want 1:\n%s", n, f.log)
	}
}

// S-PUL-28: with attempts they are used up, and the fault says that the subscription
// is busy; without, the start's end ends the waiting.
func TestBusyIsNamed(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	n := parsed(t, name(t))
	cfg := config(connected(t, b), "s", n)
	cfg.Type = wire.Exclusive
	opened(t, cfg)
	for _, tt := range []struct {
		name     string
		attempts int
		want     string
	}{
		{"attempts", 2, "after 2 tries: "},
		{"cancelled", 0, "after "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := proxy.Start(t, b.Address())
			cfg := cfg
			cfg.Client, cfg.Attempts = connectedTo(t, p.URL(), b.Token("admin")), tt.attempts
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := tryOpen(ctx, t, cfg, quick())
				ended <- err
			}()
			p.Await(proxy.ToServer, proxy.Subscribe, 2) // the first try was refused
			if tt.attempts == 0 {
				cancel()
			}
			err := within(t, "the end", ended)
			f, _ := errors.AsType[*core.Fault](err)
			if f == nil || f.Code != core.FaultConflict || !strings.HasPrefix(f.Message, tt.want) || !strings.Contains(f.Message, n.String()) {
				t.Errorf("got %v, want one that begins with %q", err, tt.want)
			}
		})
	}
}

// number is the number behind the last letter or dash of a payload.
func number(t *testing.T, payload string) int {
	t.Helper()
	i := strings.LastIndexAny(payload, "-m")
	n := 0
	for _, c := range payload[i+1:] {
		n = 10*n + int(c-'0')
	}
	return n
}
