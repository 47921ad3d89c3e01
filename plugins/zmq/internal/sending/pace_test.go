// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
)

// numbers reads messages until n have come or the connection ends, and sends how
// many came, less than nothing where they were not in order. It pauses after
// each.
func (r *remote) numbers(n int, pause time.Duration) <-chan int {
	out := make(chan int, 1)
	tick := time.NewTicker(max(pause, time.Millisecond))
	go func() {
		defer tick.Stop()
		defer r.conn.Reader().Close()
		c, last := 0, -1
		for ; c < n; c++ {
			m, err := r.next()
			if err != nil {
				break
			}
			i := number(m.Payload)
			if i <= last {
				c = -n
				break
			}
			if last = i; pause > 0 {
				<-tick.C
			}
		}
		out <- c
	}()
	return out
}

func numbered(name string, i, size int) *core.Message {
	body := make([]byte, size)
	binary.BigEndian.PutUint32(body, uint32(i))
	return &core.Message{Name: name, Payload: body}
}

func number(payload []byte) int { return int(binary.BigEndian.Uint32(payload)) }

// counted returns what numbers sends.
func counted(tb testing.TB, c <-chan int) int {
	tb.Helper()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case n := <-c:
		return n
	case <-late.C:
		tb.Fatal("messages are missing")
	}
	return 0
}

// waiting returns how many messages wait for subscribers.
func (p *Pub) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.backlog.len()
}

// burst publishes n numbered messages as fast as a host does.
func burst(p *Pub, name string, n, size int) *hostWindow {
	w := newWindow()
	for i := range n {
		w.publish(p, numbered(name, i, size))
	}
	w.wait()
	return w
}

// longer is stillAfter for tests in which nothing may be lost on a machine that
// has much else to do.
const longer = 2 * time.Second

var bursts = []struct{ n, size int }{{100_000, 512}, {60, 1 << 20}}

// TestPubBurst has subscribers that read as fast as they can, and one that does
// not: the first miss nothing of a burst that is far beyond their queues.
func TestPubBurst(t *testing.T) {
	for _, subscribers := range []int{1, 3} {
		for _, row := range bursts {
			t.Run(fmt.Sprintf("%d subscribers/%d of %d bytes", subscribers, row.n, row.size), func(t *testing.T) {
				pub := NewPub(Config{})
				pub.clock.still = longer
				b := listen(t, zmq4.Pub, outq.Limits{}, pub.Serve)
				subscriberOf(t, pub, b.address, "")
				var got []<-chan int
				for range subscribers {
					got = append(got, subscriberOf(t, pub, b.address, "").numbers(row.n, 0))
				}
				if w := burst(pub, "events", row.n, row.size); w.confirmed != row.n || w.unrouted > 0 {
					t.Errorf("%d confirmed, %d of them unrouted", w.confirmed, w.unrouted)
				}
				for i, c := range got {
					if n := counted(t, c); n != row.n {
						t.Errorf("subscriber %d has %d of %d", i, n, row.n)
					}
				}
				pub.Close(t.Context())
			})
		}
	}
}

// TestPubBurstToPyzmq is TestPubBurst with a subscriber that is not ours.
func TestPubBurstToPyzmq(t *testing.T) {
	for _, row := range bursts {
		t.Run(fmt.Sprintf("%d of %d bytes", row.n, row.size), func(t *testing.T) {
			pub := NewPub(Config{})
			pub.clock.still = longer
			b := listen(t, zmq4.Pub, outq.Limits{}, pub.Serve)
			subscriberOf(t, pub, b.address, "")
			p := zmqtest.Python(t, `
s = ctx.socket(zmq.SUB)
s.connect(arg[0])
s.subscribe("events")
say("subscribed")
n = int(arg[1])
for i in range(n):
    m = s.recv_multipart()
    if int.from_bytes(m[2][:4], "big") != i:
        say("came", int.from_bytes(m[2][:4], "big"), "want", i)
        break
else:
    say("all")
hear()
`, b.address, fmt.Sprint(row.n))
			p.Expect("subscribed")
			zmqtest.Until(t, "it has subscribed", func() bool { return pub.heardFrom() == 2 })
			burst(pub, "events", row.n, row.size)
			p.Expect("all")
			pub.Close(t.Context())
		})
	}
}

// TestPubStoppedAlone has nobody but a subscriber that does not read: messages
// wait for it once, and when it has read again.
func TestPubStoppedAlone(t *testing.T) {
	pub := NewPub(Config{})
	b := listen(t, zmq4.Pub, outq.Limits{}, pub.Serve)
	sub := subscriberOf(t, pub, b.address, "")
	const n, size = 30_000, 1024 // beyond what the system holds
	start := time.Now()
	burst(pub, "events", n, size)
	if d := time.Since(start); d < stillAfter || d > 10*stillAfter {
		t.Errorf("%d messages took %v, want one wait of %v", n, d, stillAfter)
	}
	first, _ := pub.Totals()
	if first == 0 {
		t.Fatal("nothing was dropped")
	}
	rounds := pub.clock.round // nothing waits: nobody else looks at it
	burst(pub, "events", n, size)
	if pub.clock.round != rounds {
		t.Error("it is known to have stopped, and messages wait")
	}
	second, _ := pub.Totals()
	if second-first != n {
		t.Errorf("%d were dropped, want all %d", second-first, n)
	}
	got := sub.drain()
	zmqtest.Until(t, "it has caught up", func() bool {
		pub.mu.Lock()
		defer pub.mu.Unlock()
		left, _ := pub.subscribers[0].peer.Out.Depth()
		return left == 0
	})
	burst(pub, "events", n, size)
	if third, _ := pub.Totals(); third != second {
		t.Errorf("it reads, and %d were dropped", third-second)
	}
	pub.Close(t.Context())
	b.close(t)
	for range got {
	}
}

// TestZ05SlowerSubscriber has a subscriber that reads, but slowly: others wait for
// it for a moment, in all.
func TestZ05SlowerSubscriber(t *testing.T) {
	pub := NewPub(Config{})
	b := listen(t, zmq4.Pub, outq.Limits{Messages: 100}, pub.Serve)
	slow := subscriberOf(t, pub, b.address, "").numbers(1<<30, 10*time.Millisecond) // 3 MiB a second
	const n, size = 4000, 32 << 10
	got := subscriberOf(t, pub, b.address, "").numbers(n, 0)
	start := time.Now()
	burst(pub, "events", n, size)
	if c := counted(t, got); c != n {
		t.Errorf("the fast one has %d of %d", c, n)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %v, and the slow one needs 40 s", d)
	}
	if dropped, _ := pub.Totals(); dropped < n/2 {
		t.Errorf("%d of %d were dropped for the slow one", dropped, n)
	}
	pub.Close(t.Context())
	b.close(t)
	<-slow
}

// TestPubOthersWaitBehind has a slow subscriber to one prefix and one to another:
// the second waits behind the first, once.
func TestPubOthersWaitBehind(t *testing.T) {
	pub := NewPub(Config{})
	b := listen(t, zmq4.Pub, outq.Limits{Messages: 100}, pub.Serve)
	slow := subscriberOf(t, pub, b.address, "slow").numbers(1<<30, 10*time.Millisecond)
	const n, size = 4000, 32 << 10
	got := subscriberOf(t, pub, b.address, "fast").numbers(n, 0)
	w := newWindow()
	start := time.Now()
	for i := range n {
		w.publish(pub, numbered("slow", i, size))
		w.publish(pub, numbered("fast", i, size))
	}
	w.wait()
	if c := counted(t, got); c != n {
		t.Errorf("the fast one has %d of %d", c, n)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("it took %v, and the slow one needs 40 s", d)
	}
	pub.Close(t.Context())
	b.close(t)
	<-slow
}

// TestPubCloseSendsWhatWaits closes while messages wait for a subscriber that
// reads: they were accepted.
func TestPubCloseSendsWhatWaits(t *testing.T) {
	pub := NewPub(Config{Linger: limit})
	b := listen(t, zmq4.Pub, outq.Limits{Messages: 4}, pub.Serve)
	sub := subscriberOf(t, pub, b.address, "")
	const n, size = 1000, 64 << 10 // beyond what the system holds
	r := newReceipts()
	for i := range n {
		pub.Publish(numbered("events", i, size), r.ticket(i))
	}
	if pub.waiting() == 0 {
		t.Fatal("nothing waits")
	}
	got := sub.numbers(n, 0)
	pub.Close(context.Background())
	if c := r.count(pluginapi.ReceiptConfirmed); c != n {
		t.Errorf("%d confirmed of %d", c, n)
	}
	if c := counted(t, got); c != n {
		t.Errorf("%d of %d came", c, n)
	}
	b.close(t)
}

// TestPubClosesBesideOneThatStopped closes while messages wait for a subscriber
// that does not read: they are refused after the linger at the latest.
func TestPubClosesBesideOneThatStopped(t *testing.T) {
	pub := NewPub(Config{Linger: 20 * time.Millisecond})
	b := listen(t, zmq4.Pub, outq.Limits{Messages: 4}, pub.Serve)
	subscriberOf(t, pub, b.address, "")
	pub.clock.still = limit
	r := newReceipts()
	const n = 1000
	for i := range n {
		pub.Publish(numbered("events", i, 64<<10), r.ticket(i))
	}
	pub.Close(context.Background())
	r.await(t, n)
	for i := range n {
		if x := r.one(t, i); x.Fault != nil && !strings.Contains(x.Fault.Message, "was not sent") {
			t.Fatalf("receipt %v", x)
		}
	}
}
