// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// S-PUL-01, S-PUL-30: acks are single.
func TestPUL01Ack(t *testing.T) {
	for name, kind := range types {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := open(t, broker.Broker(t), options{kind: kind})
			k.publish(0, 3, false)
			ds := k.take(3)
			want := uint32(0)
			if counts(kind) {
				want = 1
			}
			for i, d := range ds {
				if d.text != fmt.Sprintf("m%d", i) || d.attempt != want {
					t.Errorf("delivery %d is %q, attempt %d", i, d.text, d.attempt)
				}
			}
			k.ack(ds[2], ds[0])
			k.backlog(1)
			k.ack(ds[1])
			k.backlog(0)
			k.quiet(50 * time.Millisecond)
		})
	}
}

// S-PUL-03: a retry comes back in milliseconds on a quiet machine, with its count.
func TestPUL03Retry(t *testing.T) {
	for name, kind := range types {
		if !counts(kind) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := open(t, broker.Broker(t), options{kind: kind})
			k.publish(0, 1, false)
			d := k.next()
			var waits []time.Duration
			for n := range uint32(50) {
				if d.attempt != n+1 {
					t.Fatalf("attempt %d, want %d", d.attempt, n+1)
				}
				id, at := d.id, time.Now()
				k.requeue(0, d)
				d = k.next()
				waits = append(waits, d.at.Sub(at))
				if d.id != id {
					t.Fatalf("its identity was %x and is %x", id, d.id)
				}
			}
			k.ack(d)
			k.backlog(0)
			slices.Sort(waits)
			if p50 := waits[len(waits)/2]; p50 > 500*time.Millisecond {
				t.Errorf("redelivered after %v at p50", p50)
			}
			t.Logf("redelivered after %v at p50, %v at p90, %v at most", waits[25], waits[45], waits[49])
		})
	}
}

// S-PUL-04: a retry takes the order back to its message.
func TestPUL04OrderRewinds(t *testing.T) {
	for name, kind := range types {
		if counts(kind) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := open(t, broker.Broker(t), options{kind: kind})
			k.publish(0, 6, false)
			ds := k.take(6)
			k.ack(ds[0], ds[3])
			k.requeue(0, ds[2])
			again := k.take(3)
			for i, want := range []string{"m2", "m4", "m5"} {
				if again[i].text != want || again[i].attempt != 0 {
					t.Errorf("delivery %d is %q, attempt %d, want %q", i, again[i].text, again[i].attempt, want)
				}
			}
			for _, d := range []delivery{ds[4], ds[5]} {
				if void, returns := k.void(d); !void || !returns {
					t.Errorf("%q: void %v, returns %v", d.text, void, returns)
				}
			}
			if void, _ := k.void(ds[1]); void {
				t.Error("what stands before it is void")
			}
			k.ack(ds[1])
			k.ack(again...)
			k.publish(6, 1, false)
			k.ack(k.next())
			k.backlog(0)
			k.quiet(50 * time.Millisecond)
		})
	}
}

// S-PUL-04, S-PUL-36: what waits is not part of a rewind, and what a rewind has made
// void can be asked for again.
func TestPUL04RewindBesideWaits(t *testing.T) {
	t.Parallel()
	const wait = 3 * time.Second
	k := open(t, broker.Broker(t), options{kind: wire.Exclusive})
	k.publish(0, 4, false)
	ds := k.take(4)
	at := time.Now()
	k.requeue(wait, ds[2])
	k.requeue(0, ds[1], ds[3], ds[0])
	again := k.take(3)
	for i, want := range []string{"m0", "m1", "m3"} {
		if again[i].text != want {
			t.Errorf("delivery %d is %q, want %q", i, again[i].text, want)
		}
	}
	d := k.next()
	if after := d.at.Sub(at); d.text != "m2" || after < wait {
		t.Errorf("%q came after %v", d.text, after)
	}
	if void, returns := k.void(again[2]); !void || !returns {
		t.Errorf("what stands behind it: void %v, returns %v", void, returns)
	}
	k.ack(again[0], again[1], d, k.next())
	k.backlog(0)
	k.quiet(50 * time.Millisecond)
}

// S-PUL-05, S-PUL-36, P-02: a retry later comes when its time is over, not before.
func TestPUL05RetryLater(t *testing.T) {
	for name, kind := range types {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := open(t, broker.Broker(t), options{kind: kind})
			k.publish(0, 1, false)
			const wait = 300 * time.Millisecond
			d := k.next()
			for range 5 {
				at := time.Now()
				k.requeue(wait, d)
				d = k.next()
				if after := d.at.Sub(at); after < wait || after > 20*wait {
					t.Errorf("back after %v, want %v", after, wait)
				}
			}
			k.ack(d)
			k.backlog(0)
		})
	}
}

// S-PUL-06: a wait that is shorter than the ack timeout is kept, though the delivery
// has been out for longer by its end.
func TestPUL06WaitBesideAckTimeout(t *testing.T) {
	t.Parallel()
	const runs, wait, timeout = 2 * time.Second, 5 * time.Second, 6 * time.Second
	k := open(t, broker.Broker(t), options{kind: wire.Shared, timeout: timeout})
	k.publish(0, 1, false)
	d := k.next()
	time.Sleep(runs) // the handler's
	at := time.Now()
	k.requeue(wait, d)
	d = k.next()
	if after := d.at.Sub(at); after < wait {
		t.Errorf("back after %v, want %v", after, wait)
	}
	if d.attempt != 2 {
		t.Errorf("attempt %d, want 2", d.attempt)
	}
	k.ack(d)
	k.backlog(0)
}

// S-PUL-33, S-PUL-35, S-PUL-07: what was let go of comes by the ack timeout.
func TestPUL33ReleaseWithAckTimeout(t *testing.T) {
	for name, kind := range types {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const timeout = 3 * time.Second
			k := open(t, broker.Broker(t), options{kind: kind, timeout: timeout})
			k.publish(0, 2, false)
			ds := k.take(2)
			k.inner.Release([]any{ds[0].handle})
			k.ack(ds[1])
			d := k.next()
			if after := d.at.Sub(ds[0].at); d.text != "m0" || after < timeout || after > 20*timeout {
				t.Errorf("%q came after %v, want %v", d.text, after, timeout)
			}
			if counts(kind) && d.attempt != 2 || !counts(kind) && d.attempt != 0 {
				t.Errorf("attempt %d", d.attempt)
			}
			if void, _ := k.void(ds[0]); void {
				t.Error("what the host has let go of is void")
			}
			k.ack(d)
			k.backlog(0)
			k.quiet(timeout + 100*time.Millisecond)
		})
	}
}

// S-PUL-34: without an ack timeout what was let go of comes when the consumer is gone.
func TestPUL34ReleaseWithoutAckTimeout(t *testing.T) {
	for name, kind := range types {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := open(t, broker.Broker(t), options{kind: kind})
			k.publish(0, 2, false)
			ds := k.take(2)
			k.inner.Release([]any{ds[0].handle})
			k.ack(ds[1])
			k.backlog(1)
			k.quiet(300 * time.Millisecond)
			k.close()
			next := open(t, k.b, options{kind: kind, topic: k.topic})
			d := next.next()
			if d.text != "m0" || d.attempt > 1 {
				t.Errorf("%q came with attempt %d", d.text, d.attempt)
			}
			next.ack(d)
			next.backlog(0)
		})
	}
}

// S-PUL-22, P-17: a handler that outlives the ack timeout. Its late ack counts; what
// came again meanwhile runs once more and is not settled by it.
func TestPUL22LateAck(t *testing.T) {
	for name, kind := range types {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const timeout = 3 * time.Second
			k := open(t, broker.Broker(t), options{kind: kind, timeout: timeout})
			k.publish(0, 1, false)
			first := k.next()
			second := k.next()
			if void, returns := k.void(first); !void || !returns {
				t.Errorf("the first delivery: void %v, returns %v", void, returns)
			}
			k.ackLate(first)
			k.backlog(0)
			if void, _ := k.void(second); void {
				t.Error("the late ack has settled the second delivery")
			}
			k.ack(second)
			k.quiet(timeout + 500*time.Millisecond)
			if void, _ := k.void(second); void {
				t.Error("the second delivery became void")
			}
			if r := k.inner.Settle(t.Context(), []pluginapi.Verdict{{Handle: first.handle, Kind: core.VerdictRequeue}}); r[0].Status != pluginapi.ResultStale {
				t.Errorf("another late verdict: %+v", r)
			}
		})
	}
}

// S-PUL-29, S-PUL-21: an end does not wait for what is held, and nothing of it is lost
// or counted.
func TestPUL29EndWithWaits(t *testing.T) {
	for name, kind := range types {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := open(t, broker.Broker(t), options{kind: kind})
			k.publish(0, 3, false)
			ds := k.take(3)
			k.requeue(time.Hour, ds[0])
			k.ack(ds[1])
			begin := time.Now()
			k.close()
			if d := time.Since(begin); d > patience/4 {
				t.Errorf("the end took %v", d)
			}
			next := open(t, k.b, options{kind: kind, topic: k.topic})
			again := next.take(2)
			slices.SortFunc(again, func(a, b delivery) int { return int(a.text[1]) - int(b.text[1]) })
			if again[0].text != "m0" || again[1].text != "m2" || again[0].attempt > 1 {
				t.Errorf("came again: %+v", again)
			}
			next.ack(again...)
			next.backlog(0)
		})
	}
}
