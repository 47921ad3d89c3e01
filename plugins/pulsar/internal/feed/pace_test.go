// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// The broker may send as much as there is room for, by what came lately.
func TestPace(t *testing.T) {
	const mib = 1 << 20
	const room = 32 * mib
	var p pace
	step := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Fatalf("%s: %d permits, want %d", what, got, want)
		}
	}
	step("at the beginning", p.begin(1000, 5*mib, room, nil), 6)
	step("the first", p.arrived(1, 100, room), 2)
	step("the others", p.arrived(5, 500, room), 10)
	given, came := 18, 6
	for given < 1000 {
		n := p.arrived(given-came, 100*(given-came), room)
		if came, given = given, given+n; n == 0 {
			t.Fatalf("%d permits given, and all used; want more", given)
		}
	}
	step("all of the queue", given, 1000)
	step("a part taken", p.left(499), 0)
	step("half taken", p.left(1), 500)
	step("the rest", p.left(500), 500)
	for i := range 100 { // the broker has permits for 1,000
		step(fmt.Sprint("large one ", i), p.arrived(1, 5*mib, room), 0)
	}
	step("taken, and the broker has more left than there is room for", p.left(100), 0)
	if p.window > 20 {
		t.Errorf("a window of %d for large ones", p.window)
	}
	var next pace
	step("another consumer", next.begin(1000, 5*mib, room, &p), p.window)
	next.restart()
	var last pace
	step("one that is to begin with few", last.begin(1000, 5*mib, room, &next), min(6, p.window))
	var tiny pace
	step("no room at all", tiny.begin(1000, 5*mib, 1, nil), 1)
	step("it waits", tiny.arrived(1, 5*mib, 1), 0)
	step("it is taken", tiny.left(1), 1)
}

// sized publishes count messages of n bytes, numbered from there on.
func sized(t *testing.T, peer pulsar.Client, n topic.Name, from, count, size int) {
	t.Helper()
	p, err := peer.CreateProducer(pulsar.ProducerOptions{Topic: n.String(), DisableBatching: true, SendTimeout: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for i := range count {
		payload := fmt.Appendf(nil, "m%d ", from+i)
		payload = append(payload, bytes.Repeat([]byte{'x'}, size-len(payload))...)
		p.SendAsync(t.Context(), &pulsar.ProducerMessage{Payload: payload}, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := p.FlushWithCtx(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Large messages that nobody takes wait at the broker: what is ahead is bounded in bytes,
// in all partitions together.
func TestReadAheadIsBounded(t *testing.T) {
	t.Parallel()
	const count, size, room, partitions = 40, 256 << 10, 4 << 20, 2
	b := broker.Broker(t)
	p := proxy.Start(t, b.Address())
	n := parsed(t, name(t))
	b.CreatePartitioned(n.String(), partitions)
	cfg := config(connectedTo(t, p.URL(), b.Token("admin")), "s", n)
	cfg.ReceiverQueue, cfg.ReceiverBytes = 1000, room
	f := opened(t, cfg)
	f.pause()
	peer := raw(t, b)
	for i := range partitions {
		sized(t, peer, n.At(i), i*count, count, size)
	}
	p.Await(proxy.ToClient, proxy.Message, room/size/2) // half of the window may be left
	f.read()
	most := int64(0)
	eventually(t, "all messages", func() bool {
		most = max(most, f.Feed.held.Load())
		return f.got("m") == partitions*count
	})
	for i := range partitions {
		b.AwaitBacklog(n.At(i).String(), "s", 0)
	}
	f.pause()
	sized(t, peer, n.At(0), 2*partitions*count, count, size)
	sized(t, peer, n.At(1), 3*partitions*count, count, size)
	p.Await(proxy.ToClient, proxy.Message, partitions*count+room/size/2)
	most = max(most, f.Feed.held.Load())
	if came := p.Count(proxy.ToClient, proxy.Message) - partitions*count; came > room/size+partitions {
		t.Errorf("%d messages of %d bytes came that nobody reads; there is room for %d bytes", came, size, room)
	}
	if limit := int64(room + partitions*size); most > limit {
		t.Errorf("%d bytes waited, want %d at most", most, limit)
	}
	f.read()
	eventually(t, "the rest", func() bool { return f.got("m") == 2*partitions*count })
	eventually(t, "nothing is held", func() bool { return f.Feed.held.Load() == 0 })
}

// Where messages are suddenly much larger than those before, and more wait than may, the
// consumer is made anew, and they come in smaller portions.
func TestMessagesGrow(t *testing.T) {
	t.Parallel()
	const queue, small, large, size, room = 400, 1000, 200, 100 << 10, 1 << 20
	b := broker.Broker(t)
	n := parsed(t, name(t))
	cfg := config(connected(t, b), "s", n)
	cfg.ReceiverQueue, cfg.ReceiverBytes, cfg.Discovery = queue, room, never
	f := opened(t, cfg)
	peer := raw(t, b)
	publishAll(t, peer, n, 0, small, pulsar.ProducerOptions{DisableBatching: true})
	eventually(t, "small messages", func() bool { return f.got("m") == small })
	permits(t, b, n, "s", queue)
	f.pause()
	part := f.all()[0]
	epoch := part.Epoch()
	done := make(chan struct{})
	most := int64(0)
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for part.Epoch() == epoch || part.current() == nil {
			most = max(most, f.Feed.held.Load())
			<-tick.C
		}
	}()
	sized(t, peer, n, small, large, size)
	within(t, "another consumer", done)
	if limit := int64(flood*room + batchBytes + size); most > limit {
		t.Errorf("%d bytes waited, want %d at most", most, limit)
	}
	f.read()
	eventually(t, "all messages", func() bool { return f.got("m") == small+large })
	b.AwaitBacklog(n.String(), "s", 0)
	if !strings.Contains(f.log.String(), errFlooded.Error()) {
		t.Error("nothing was logged")
	}
}
