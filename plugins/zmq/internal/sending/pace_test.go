// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
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

// talker is a connection whose writer does not wait for the reader.
type talker struct {
	net.Conn
	said chan []byte
}

func newTalker(nc net.Conn) *talker {
	t := &talker{Conn: nc, said: make(chan []byte, 10)}
	go func() {
		for b := range t.said {
			_, _ = nc.Write(b) // the other end may be gone
		}
	}()
	return t
}

func (t *talker) Write(b []byte) (int, error) {
	t.said <- bytes.Clone(b)
	return len(b), nil
}

// attach gives a Pub in a bubble a subscriber to a prefix, over a connection that
// holds no byte: what it does not read lies in its queue.
func attach(t *testing.T, p *Pub, name string, limits outq.Limits, prefix string) *remote {
	t.Helper()
	near, silent := net.Pipe()
	far := newTalker(silent)
	t.Cleanup(func() { close(far.said); far.Close() })
	ends := make(chan *zmtp.Conn, 1)
	go func() {
		c, err := zmtp.Open(t.Context(), far, zmtp.Options{Type: zmq4.Sub, MaxMessage: 64 << 20})
		if err != nil {
			t.Error(err)
		}
		ends <- c
	}()
	conn, err := zmtp.Open(t.Context(), near, zmtp.Options{Type: zmq4.Pub, MaxMessage: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	peer := peering.NewPeer(conn, outq.New(near, limits), name, -1)
	go func() { peer.Close(p.Serve(peer)) }()
	r := &remote{conn: <-ends}
	if _, err := far.Write(zmtp.AppendSubscribe(nil, prefix, true)); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return r
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

var bursts = []struct {
	n, size int
	limits  outq.Limits
}{{10_000, 512, outq.Limits{}}, {60, 256 << 10, outq.Limits{Bytes: 2 << 20}}}

// TestPubBurst has subscribers that read as fast as they can, and one that does
// not: the first miss nothing of a burst that is far beyond their queues.
func TestPubBurst(t *testing.T) {
	for _, subscribers := range []int{1, 3} {
		for _, row := range bursts {
			t.Run(fmt.Sprintf("%d subscribers/%d of %d bytes", subscribers, row.n, row.size), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					pub := NewPub(Config{})
					attach(t, pub, "stopped", row.limits, "")
					var got []<-chan int
					for range subscribers {
						got = append(got, attach(t, pub, "reader", row.limits, "").numbers(row.n, 0))
					}
					if w := burst(pub, "events", row.n, row.size); w.confirmed != row.n || w.unrouted > 0 {
						t.Errorf("%d confirmed, %d of them unrouted", w.confirmed, w.unrouted)
					}
					for i, c := range got {
						if n := <-c; n != row.n {
							t.Errorf("subscriber %d has %d of %d", i, n, row.n)
						}
					}
					pub.Close(t.Context())
				})
			})
		}
	}
}

// TestPubBurstToPyzmq is TestPubBurst with a subscriber that is not ours.
// Once the one that does not read is known to have stopped, others are waited for
// as long as a machine may keep them from running.
func TestPubBurstToPyzmq(t *testing.T) {
	for _, row := range bursts {
		t.Run(fmt.Sprintf("%d of %d bytes", row.n, row.size), func(t *testing.T) {
			pub := NewPub(Config{})
			b := listen(t, zmq4.Pub, row.limits, pub.Serve)
			subscriberOf(t, pub, b.address, "")
			burst(pub, "events", 2000, 16<<10) // beyond its queue and what the system holds
			if dropped, _ := pub.Totals(); dropped == 0 {
				t.Fatal("nothing was dropped")
			}
			pub.mu.Lock()
			pub.clock.still = limit
			pub.mu.Unlock()
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
	synctest.Test(t, func(t *testing.T) {
		pub := NewPub(Config{})
		sub := attach(t, pub, "stopped", outq.Limits{}, "")
		const n, size = 3000, 1024 // three times its queue
		start := time.Now()
		burst(pub, "events", n, size)
		if d := time.Since(start); d < stillAfter || d > 2*stillAfter {
			t.Errorf("%d messages took %v, want one wait of %v", n, d, stillAfter)
		}
		first, _ := pub.Totals()
		if first == 0 {
			t.Fatal("nothing was dropped")
		}
		start = time.Now()
		burst(pub, "events", n, size)
		if d := time.Since(start); d > 0 {
			t.Errorf("it is known to have stopped, and messages wait for %v", d)
		}
		second, _ := pub.Totals()
		if second-first != n {
			t.Errorf("%d were dropped, want all %d", second-first, n)
		}
		sub.drain()
		synctest.Wait()
		if left, _ := pub.subscribers[0].peer.Out.Depth(); left > 0 {
			t.Fatalf("it reads, and %d wait for it", left)
		}
		burst(pub, "events", n, size)
		if third, _ := pub.Totals(); third != second {
			t.Errorf("it reads, and %d were dropped", third-second)
		}
		pub.Close(t.Context())
	})
}

// TestZ05SlowerSubscriber has a subscriber that reads, but slowly: others wait for
// it for a moment, in all.
func TestZ05SlowerSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pub := NewPub(Config{})
		limits := outq.Limits{Messages: 100}
		slow := attach(t, pub, "slow", limits, "").numbers(1<<30, 10*time.Millisecond)
		const n, size = 4000, 2 << 10
		got := attach(t, pub, "fast", limits, "").numbers(n, 0)
		start := time.Now()
		burst(pub, "events", n, size)
		if c := <-got; c != n {
			t.Errorf("the fast one has %d of %d", c, n)
		}
		if d := time.Since(start); d > 2*stillAfter {
			t.Errorf("it took %v, and the slow one needs 40 s", d)
		}
		if dropped, _ := pub.Totals(); dropped < n/2 {
			t.Errorf("%d of %d were dropped for the slow one", dropped, n)
		}
		pub.Close(t.Context())
		detach(pub)
		<-slow
	})
}

// TestPubOthersWaitBehind has a slow subscriber to one prefix and one to another:
// the second waits behind the first, once.
func TestPubOthersWaitBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pub := NewPub(Config{})
		limits := outq.Limits{Messages: 100}
		slow := attach(t, pub, "slow", limits, "slow").numbers(1<<30, 10*time.Millisecond)
		const n, size = 4000, 2 << 10
		got := attach(t, pub, "fast", limits, "fast").numbers(n, 0)
		w := newWindow()
		start := time.Now()
		for i := range n {
			w.publish(pub, numbered("slow", i, size))
			w.publish(pub, numbered("fast", i, size))
		}
		w.wait()
		if c := <-got; c != n {
			t.Errorf("the fast one has %d of %d", c, n)
		}
		if d := time.Since(start); d > 2*mostAge {
			t.Errorf("it took %v, and the slow one needs 40 s", d)
		}
		pub.Close(t.Context())
		detach(pub)
		<-slow
	})
}

// TestPubCloseSendsWhatWaits closes while messages wait for a subscriber that
// reads: they were accepted.
func TestPubCloseSendsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pub := NewPub(Config{Linger: time.Second})
		sub := attach(t, pub, "reader", outq.Limits{Messages: 4}, "")
		const n, size = 500, 16 << 10
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
		if c := <-got; c != n {
			t.Errorf("%d of %d came", c, n)
		}
	})
}

// TestPubClosesBesideOneThatStopped closes while messages wait for a subscriber
// that does not read: they are refused after the linger.
func TestPubClosesBesideOneThatStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const linger, n = 20 * time.Millisecond, 1000
		pub := NewPub(Config{Linger: linger})
		attach(t, pub, "stopped", outq.Limits{Messages: 4}, "")
		r := newReceipts()
		for i := range n {
			pub.Publish(numbered("events", i, 64<<10), r.ticket(i))
		}
		start := time.Now()
		pub.Close(context.Background())
		if d := time.Since(start); d != linger {
			t.Errorf("Close took %v, want the linger of %v", d, linger)
		}
		refused := 0
		for i := range n {
			x := r.of(i)
			switch {
			case len(x) != 1:
				t.Fatalf("message %d has receipts %v", i, x)
			case x[0].Fault == nil:
			case !strings.Contains(x[0].Fault.Message, "was not sent"):
				t.Fatalf("receipt %v", x[0])
			default:
				refused++
			}
		}
		if refused == 0 {
			t.Error("nothing is refused")
		}
	})
}
