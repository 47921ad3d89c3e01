// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// A consumer that the broker does not know any more, and that nobody has told, is
// found out and made anew.
func TestSilentConsumerIsMadeAnew(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	n := parsed(t, name(t))
	f := opened(t, config(connected(t, b), "s", n))
	closeBehind(t, f.all()[0].current())
	publish(t, producer(t, raw(t, b), n.String()), "m", 3)
	eventually(t, "the messages", func() bool { return f.got("m") == 3 })
	if !strings.Contains(f.log.String(), "is made anew") {
		t.Errorf("no line about it:\n%s", f.log)
	}
}

// One that the broker closes before its first message may come, as when a topic is
// unloaded twice, is known to be lost.
func TestClosedAtOnceIsMadeAnew(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	cfg := config(connected(t, b), "s", parsed(t, name(t)))
	cfg.Discovery = never
	f := opened(t, cfg)
	n := parsed(t, name(t))
	f.mu.Lock()
	p := f.add(n, &followed{Topic: Topic{Name: n, As: n.Local}, named: true}, true)
	f.mu.Unlock()
	m, err := f.subscribe(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	closeBehind(t, m)
	m.Closed() // what the connection says behind the subscription's answer
	p.join(m)
	f.keepers.Go(p.keep)
	publish(t, producer(t, raw(t, b), n.String()), "m", 3)
	eventually(t, "the messages", func() bool { return f.got("m") == 3 })
	if epoch := p.Epoch(); epoch != 2 {
		t.Errorf("the epoch is %d, want 2", epoch)
	}
}

// Consumers that live are asked again and again, and stay.
func TestLivingConsumerStays(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	n := parsed(t, name(t))
	cfg := config(connected(t, b), "s", n)
	cfg.Discovery = 20 * time.Millisecond
	f := opened(t, cfg)
	m := f.all()[0].current()
	publish(t, producer(t, raw(t, b), n.String()), "m", 200) // some hundred ms, and as many questions
	eventually(t, "the messages", func() bool { return f.got("m") == 200 })
	if f.all()[0].current() != m || f.all()[0].epoch.Load() != 1 {
		t.Errorf("the consumer was made anew:\n%s", f.log)
	}
}

// A broker that answers nothing for a while: consumers are made anew when it is back,
// and a Close meanwhile has a limit.
func TestBrokerStalls(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	p := proxy.Start(t, b.Address())
	n := parsed(t, name(t))
	c := connectedTo(t, p.URL(), b.Token("admin"))
	cfg := config(c, "s", n)
	cfg.Discovery = 100 * time.Millisecond
	times := quick()
	times.proof, times.closing = 200*time.Millisecond, 200*time.Millisecond
	f, err := tryOpen(t.Context(), t, cfg, times)
	if err != nil {
		t.Fatal(err)
	}
	p.Stall(proxy.ToClient)
	eventually(t, "the silence is noticed", func() bool { return strings.Contains(f.log.String(), "does not answer it") })
	p.Resume()
	publish(t, producer(t, raw(t, b), n.String()), "m", 3)
	eventually(t, "the messages", func() bool { return f.got("m") == 3 })

	p.Stall(proxy.ToClient)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	f.pause()
	began := time.Now()
	if err := f.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: got %v, want the deadline", err)
	}
	if took := time.Since(began); took > patience/10 {
		t.Errorf("Close took %v, its limit is 300 ms", took)
	}
	if err := f.Seek(t.Context(), pluginapi.Position{Kind: pluginapi.PositionEnd}); err == nil {
		t.Error("a seek behind Close has no error")
	}
	p.Resume()
}

// While the broker answers nothing, neither acks nor the end of a consumer, a Close still
// ends well before those who call it lose patience.
func TestCloseBeforeASilentBroker(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	p := proxy.Start(t, b.Address())
	n := parsed(t, name(t))
	f, err := tryOpen(t.Context(), t, config(connectedTo(t, p.URL(), b.Token("admin")), "s", n), defaultTimes())
	if err != nil {
		t.Fatal(err)
	}
	p.Stall(proxy.ToClient)
	defer p.Resume()
	sought := make(chan error, 1)
	go func() { sought <- f.Seek(t.Context(), pluginapi.Position{Kind: pluginapi.PositionEnd}) }()
	eventually(t, "the seek is under way", func() bool { return f.all()[0].current().isClosed() })
	began := time.Now()
	if err := f.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > patience/10 {
		t.Errorf("Close took %v", took)
	}
	if err := within(t, "the seek's end", sought); err == nil {
		t.Error("a seek has no error that had no answer")
	}
}

// isClosed reports whether no acks begin any more.
func (m *member) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// A topic of a pattern that is deleted is read no more, and said to be lost; one that
// a subscription names is waited for.
func TestLostTopics(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	space := "public/" + strings.ToLower(name(t))
	b.CreateNamespace(space)
	b.CreatePartitioned(space+"/a", 2)
	b.CreateTopic(space + "/b")
	pattern, err := topic.ParsePattern(space + "/.*")
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(connected(t, b), "s")
	cfg.Pattern = &pattern
	f := opened(t, cfg)
	if got := len(f.all()); got != 3 {
		t.Fatalf("%d partitions are read, want 3", got)
	}
	b.DeletePartitioned(space + "/a")
	eventually(t, "two lost partitions", func() bool {
		return f.markers(func(b *Batch) bool { return b.Lost && b.Partition.Topic.Local == "a" }) == 2
	})
	eventually(t, "one partition that is left", func() bool { return len(f.all()) == 1 })
	publish(t, producer(t, raw(t, b), space+"/b"), "m", 3)
	eventually(t, "the messages of the other", func() bool { return f.got("m") == 3 })
	b.CreatePartitioned(space+"/a", 1)
	publish(t, producer(t, raw(t, b), space+"/a"), "again-", 3)
	eventually(t, "the messages of the topic that is there again", func() bool { return f.got("again-") == 3 })
}

// A subscription to one partition reads that one.
func TestOnePartition(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	n := parsed(t, name(t))
	b.CreatePartitioned(n.String(), 3)
	f := opened(t, config(connected(t, b), "s", n.At(1)))
	p := producer(t, raw(t, b), n.String())
	publish(t, p, "m", 30)
	b.Await(n.At(1).String(), "acks", func(s pulsarbroker.Stats) bool { return s.Subscriptions["s"].Backlog == 0 && s.MsgInCounter > 0 })
	sent := int(b.Stats(n.At(1).String()).MsgInCounter)
	eventually(t, "its messages", func() bool { return f.got("m") == sent })
	if len(f.all()) != 1 {
		t.Errorf("%d partitions are read", len(f.all()))
	}
}

// A topic that is made again without partitions is read whole, and the other way
// round.
func TestTopicMadeAgainOtherwise(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	n := parsed(t, name(t))
	b.CreatePartitioned(n.String(), 2)
	f := opened(t, config(connected(t, b), "s", n))
	b.DeletePartitioned(n.String())
	eventually(t, "a line about it", func() bool { return strings.Contains(f.log.String(), "cannot be read for now") })
	b.CreateTopic(n.String())
	publish(t, producer(t, raw(t, b), n.String()), "whole-", 3)
	eventually(t, "messages without partitions", func() bool { return f.got("whole-") == 3 })
	p := f.from["whole-0"]
	if p.Topic.Partition != topic.NoPartition {
		t.Errorf("read as %v", p.Topic)
	}
	if err := p.Ack(nil); err != nil {
		t.Errorf("an ack of nothing: %v", err)
	}
}

// What ends for good is said once, and the feed can be closed then.
func TestEndIsSaidOnce(t *testing.T) {
	t.Parallel()
	ended := make(chan *core.Fault, 2)
	f := &Feed{Config: Config{Ended: func(why *core.Fault) { ended <- why }}}
	first := &core.Fault{Message: "first"}
	f.end(first)
	f.end(&core.Fault{Message: "second"})
	if got := <-ended; got != first || len(ended) > 0 {
		t.Errorf("got %v and %d more", got, len(ended))
	}
}
