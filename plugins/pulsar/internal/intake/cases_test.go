// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// P-01: 20 messages, each retried once, come again at once: a library's own delay is a
// minute.
func TestP01RetryAtOnce(t *testing.T) {
	t.Parallel()
	k := open(t, broker.Broker(t), options{kind: wire.Shared})
	k.publish(0, 20, false)
	ds := k.take(20)
	at := time.Now()
	k.requeue(0, ds...)
	for _, d := range k.take(20) {
		if after := d.at.Sub(at); after > 20*time.Second || d.attempt != 2 {
			t.Errorf("%q came after %v, attempt %d", d.text, after, d.attempt)
		}
		k.ack(d)
	}
	k.backlog(0)
}

// P-09: no ack is lost at the end: 500 messages are acked, and nothing of them comes
// again.
func TestP09AcksAtEnd(t *testing.T) {
	b := broker.Broker(t)
	topic := name(t)
	for round := range 5 {
		k := open(t, b, options{kind: wire.Shared, topic: topic})
		k.publish(0, 500, false)
		for i, d := range k.take(500) {
			if d.attempt != 1 {
				t.Fatalf("round %d, message %d: %q, attempt %d", round, i, d.text, d.attempt)
			}
			k.ack(d)
		}
		k.close()
		if n := b.Backlog(topic, "s"); n != 0 {
			t.Fatalf("round %d: %d messages are not acked", round, n)
		}
	}
}

// P-10: acks that are given while the broker is away count when it is back.
func TestP10AcksWhileTheBrokerIsAway(t *testing.T) {
	b := pulsarbroker.Start(t, pulsarbroker.Config{})
	for name, kind := range map[string]wire.SubscriptionType{"shared": wire.Shared, "exclusive": wire.Exclusive} {
		t.Run(name, func(t *testing.T) {
			k := open(t, b, options{kind: kind})
			k.publish(0, 30, false)
			ds := k.take(30)
			k.ack(ds[0])
			k.backlog(29)
			b.Stop()
			k.ack(ds[1:20]...)
			b.Start()
			late := ds[20:]
			awaitVoid(t, k, late[0])
			k.ackLate(late...)
			for text, n := range k.rest() { // came before the ack was there, or the broker had not kept the ack
				if n > 1 {
					t.Errorf("%q came again %d times", text, n)
				}
			}
			k.close()
			next := open(t, b, options{kind: kind, topic: k.topic})
			next.quiet(200 * time.Millisecond)
		})
	}
}

// rest acks what comes until there is no backlog, and returns how often what came.
func (k *kit) rest() map[string]int {
	k.tb.Helper()
	came := map[string]int{}
	limit := time.Now().Add(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(limit) {
		select {
		case d := <-k.got:
			came[d.text]++
			k.ack(d)
		case <-tick.C:
			if st, err := k.b.TryStats(k.topic); err == nil && st.Subscriptions["s"].Backlog == 0 {
				return came
			}
		}
	}
	k.tb.Fatalf("there is a backlog still; %v came", came)
	return nil
}

// awaitVoid waits until a delivery is void and comes again.
func awaitVoid(t *testing.T, k *kit, d delivery) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		if void, returns := k.void(d); void {
			if !returns {
				t.Errorf("%q does not come again", d.text)
			}
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("%q is not void", d.text)
		}
	}
}

// A topic that is unloaded: what was out comes again, once.
func TestUnload(t *testing.T) {
	for name, kind := range types {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := open(t, broker.Broker(t), options{kind: kind})
			k.publish(0, 10, false)
			ds := k.take(10)
			k.requeue(time.Hour, ds[9])
			k.ack(ds[0])
			k.backlog(9)
			k.b.Unload(k.topic)
			awaitVoid(t, k, ds[1])
			again := k.rest()
			delete(again, "m0") // the broker may not have kept its ack
			for _, d := range ds[1:] {
				if again[d.text] != 1 {
					t.Errorf("%q came again %d times, want 1", d.text, again[d.text])
				}
			}
			if len(again) != 9 {
				t.Errorf("%v came again", again)
			}
			k.quiet(100 * time.Millisecond)
		})
	}
}

// Failover: a consumer whose turn it is not any more has what it was given made void;
// its acks count, and the rest goes to the other one.
func TestFailoverTurns(t *testing.T) {
	b := broker.Broker(t)
	topic := name(t)
	b.CreatePartitioned(topic, 2) // the second of two consumers by name is to have partition 1
	topic += "-partition-1"
	a := open(t, b, options{kind: wire.Failover, topic: topic, name: "a"})
	a.publish(0, 4, false)
	ds := a.take(4)
	a.ack(ds[0])
	a.requeue(time.Hour, ds[3])
	a.backlog(3)
	next := open(t, b, options{kind: wire.Failover, topic: topic, name: "b"})
	awaitVoid(t, a, ds[1])
	a.ackLate(ds[1])
	came := next.rest()
	if came["m2"] != 1 || came["m3"] != 1 || came["m0"] != 0 {
		t.Errorf("the other consumer got %v", came)
	}
	a.quiet(50 * time.Millisecond)
}

// Seek makes everything void that is out, and what was acked comes again where the
// position says so.
func TestSeek(t *testing.T) {
	for name, kind := range types {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := open(t, broker.Broker(t), options{kind: kind})
			k.publish(0, 10, false)
			ds := k.take(10)
			k.ack(ds[:5]...)
			k.stop()
			<-k.ended
			if err := k.inner.Seek(t.Context(), pluginapi.Position{Kind: pluginapi.PositionBeginning}); err != nil {
				t.Fatal(err)
			}
			k.begin()
			again := k.take(10)
			if got := texts(again); got != "m0 m1 m2 m3 m4 m5 m6 m7 m8 m9" {
				t.Errorf("%s came again", got)
			}
			k.ack(again...)
			k.backlog(0)
			k.quiet(100 * time.Millisecond)
		})
	}
}

// What a seek goes back to comes again, though it is known to be acked: a message that
// had come twice, and a part of a batch.
func TestSeekForgetsAcks(t *testing.T) {
	for name, kind := range types {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := open(t, broker.Broker(t), options{kind: kind, timeout: 5 * time.Second})
			k.publish(0, 1, false)
			k.next()
			k.ack(k.next())
			k.backlog(0)
			k.publish(1, 4, true)
			ds := k.take(4)
			k.ack(ds[0], ds[1])
			k.stop()
			<-k.ended
			if err := k.inner.Seek(t.Context(), pluginapi.Position{Kind: pluginapi.PositionBeginning}); err != nil {
				t.Fatal(err)
			}
			k.begin()
			again := k.take(5)
			if got := texts(again); got != "m0 m1 m2 m3 m4" {
				t.Errorf("%s came again", got)
			}
			k.ack(again...)
			k.backlog(0)
		})
	}
}

// 1,000 deliveries on hold do not keep their messages where the broker brings them
// back, nor grow with time.
func TestHoldsKeepMemoryFlat(t *testing.T) {
	k := open(t, broker.Broker(t), options{kind: wire.Shared})
	const size = 16 << 10
	k.publishSized(1000, size)
	alive := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := alive()
	held := k.take(1000)
	for i := range held {
		held[i].text = ""
	}
	k.requeue(time.Hour, held...)
	if after := alive(); after > before+4<<20 {
		t.Errorf("1,000 deliveries of %d bytes on hold take %d KiB", size, (after-before)>>10)
	}
	k.publish(0, 1, false)
	d := k.next()
	if d.text != "m0" {
		t.Errorf("beside those on hold came %q", fmt.Sprintf("%.10s", d.text))
	}
	k.ack(d)
	k.backlog(1000)
}
