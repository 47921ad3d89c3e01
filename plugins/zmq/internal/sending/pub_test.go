// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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

// heard returns how many peers have subscribed.
func (p *Pub) heardFrom() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.subscribers {
		if s.heard {
			n++
		}
	}
	return n
}

func subscribe(tb testing.TB, r *remote, prefix string, on bool) {
	tb.Helper()
	if _, err := r.conn.NetConn().Write(zmtp.AppendSubscribe(nil, prefix, on)); err != nil {
		tb.Fatal(err)
	}
}

// subscriberOf joins a Pub and subscribes to prefixes.
func subscriberOf(tb testing.TB, p *Pub, address string, prefixes ...string) *remote {
	tb.Helper()
	n := p.heardFrom()
	r := join(tb, address, zmq4.Sub, "")
	var all []byte
	for _, x := range prefixes {
		all = zmtp.AppendSubscribe(all, x, true)
	}
	if _, err := r.conn.NetConn().Write(all); err != nil {
		tb.Fatal(err)
	}
	zmqtest.Until(tb, "it has subscribed", func() bool { return p.heardFrom() > n })
	return r
}

func TestPubByPrefix(t *testing.T) {
	pub := NewPub(Config{})
	b := listen(t, zmq4.Pub, outq.Limits{}, pub.Serve)
	all := subscriberOf(t, pub, b.address, "")
	eu := subscriberOf(t, pub, b.address, "events.eu", "events.eu", "news")
	r := newReceipts()
	for i, name := range []string{"events.us", "events.eu.x", "news", "new"} {
		pub.Publish(text(name, name), r.ticket(i))
	}
	for _, want := range []string{"events.us", "events.eu.x", "news", "new"} {
		all.expect(t, want)
	}
	eu.expect(t, "events.eu.x")
	eu.expect(t, "news")
	// Asked for twice, ended once: it goes on.
	subscribe(t, eu, "events.eu", false)
	subscribe(t, eu, "news", false)
	subscribe(t, eu, "unknown", false)
	zmqtest.Until(t, "it has ended one", func() bool {
		pub.mu.Lock()
		defer pub.mu.Unlock()
		return !pub.subscribers[1].filter.matches("news")
	})
	pub.Publish(text("news", "news"), r.ticket(4))
	pub.Publish(text("events.eu", "again"), r.ticket(5))
	eu.expect(t, "again")
	all.close()
	zmqtest.Until(t, "the other is gone", func() bool { return pub.heardFrom() == 1 })
	pub.Publish(text("events.us", "x"), r.ticket(6))
	if x := r.one(t, 6); x.Status != pluginapi.ReceiptConfirmed || !x.Unrouted {
		t.Errorf("nobody wants it: %v", x)
	}
	if x := r.one(t, 5); x.Status != pluginapi.ReceiptConfirmed || x.Unrouted {
		t.Errorf("somebody wants it: %v", x)
	}
	pub.Close(t.Context())
}

func TestZ05OneSlowSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := &logged{}
		pub := NewPub(Config{Address: at("tcp://here:1"), Log: lines.logger()})
		limits := outq.Limits{Bytes: 512 << 10}
		slow := attach(t, pub, "tcp://there:2", limits, "")
		got := attach(t, pub, "fast", limits, "").drain()
		body := strings.Repeat("x", 64<<10)
		r := newReceipts()
		const n = 60
		start := time.Now()
		for i := range n {
			pub.Publish(text("events", fmt.Sprintf("%02d", i)+body), r.ticket(i))
			if i%4 == 3 {
				for j := i - 3; j <= i; j++ {
					if p := <-got; p[:2] != fmt.Sprintf("%02d", j) {
						t.Fatalf("%s came, want %02d", p[:2], j)
					}
				}
			}
		}
		if d := time.Since(start); d > 2*stillAfter {
			t.Errorf("the fast one has all after %v", d)
		}
		if c := r.count(pluginapi.ReceiptConfirmed); c != n {
			t.Errorf("%d confirmed", c)
		}
		dropped, _ := pub.Totals()
		if dropped < n/3 || dropped >= n {
			t.Errorf("%d dropped for the slow one", dropped)
		}
		for _, part := range []string{"tcp://here:1", "tcp://there:2", "dropped"} {
			if !strings.Contains(lines.text(), part) {
				t.Errorf("log lacks %q:\n%s", part, lines.text())
			}
		}
		if c := strings.Count(lines.text(), "\n"); c != 1 {
			t.Errorf("%d log lines within a second:\n%s", c, lines.text())
		}
		pub.Close(t.Context())
		slow.close()
		synctest.Wait()
		if n := pub.heardFrom(); n != 1 {
			t.Errorf("%d subscribers, want that the slow one is gone", n)
		}
		if _, lost := pub.Totals(); lost == 0 {
			t.Error("what it had waiting is not counted")
		}
	})
}

func TestZ06MemoryOfAStoppedSubscriber(t *testing.T) {
	pub := NewPub(Config{})
	b := listen(t, zmq4.Pub, outq.Limits{}, pub.Serve)
	stopped := subscriberOf(t, pub, b.address, "")
	const n = 300
	body := make([]byte, 1<<20)
	var most uint64
	var m runtime.MemStats
	w := newWindow()
	for range n {
		w.publish(pub, &core.Message{Name: "events", Payload: body})
		if runtime.ReadMemStats(&m); m.HeapInuse > most {
			most = m.HeapInuse
		}
	}
	if most > 200<<20 {
		t.Errorf("%d MiB of heap", most>>20)
	}
	dropped, _ := pub.Totals()
	if dropped < n-64-16 || dropped > n-64 {
		t.Errorf("%d dropped of %d", dropped, n)
	}
	pub.Close(t.Context())
	stopped.close()
}

func TestPubCloseWritesWhatIsQueued(t *testing.T) {
	pub := NewPub(Config{Linger: limit})
	b := listenFor(t, limit, zmq4.Pub, outq.Limits{}, pub.Serve)
	sub := subscriberOf(t, pub, b.address, "")
	const n = 500
	body := strings.Repeat("x", 50_000)
	for range n {
		pub.Publish(text("events", body), outq.Ticket{})
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		pub.Close(context.Background())
		b.close(t)
	}()
	c := 0
	for range sub.drain() {
		c++
	}
	sub.close()
	<-closed
	if _, lost := pub.Totals(); c != n || lost != 0 {
		t.Errorf("%d of %d came, %d counted lost", c, n, lost)
	}
	pub.Publish(text("events", "late"), outq.Ticket{Done: func(_ int, x pluginapi.Receipt) {
		if x.Status != pluginapi.ReceiptRefused || x.Fault.Code != core.FaultClosed {
			t.Errorf("behind Close: %v", x)
		}
	}})
}

// dialing returns a Pub that dials the address of a SUB's listener.
func dialing(tb testing.TB, c Config, address string) *Pub {
	tb.Helper()
	a, err := peering.ParseAddress(address, false)
	if err != nil {
		tb.Fatal(err)
	}
	c.Dials, c.Address = 1, at(address)
	pub := NewPub(c)
	p, err := peering.Start(tb.Context(), peering.Config{
		Connect: []peering.Address{a}, Handshake: zmtp.Options{Type: zmq4.Pub, MaxMessage: 1 << 20}, Serve: pub.Serve,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		pub.Close(context.Background())
		if err := p.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return pub
}

// TestPubThatDialsLosesNothingAtFirst has a subscriber that subscribes late.
func TestPubThatDialsLosesNothingAtFirst(t *testing.T) {
	peers := make(chan *peering.Peer, 1)
	b := listen(t, zmq4.Sub, outq.Limits{}, func(p *peering.Peer) error {
		peers <- p
		<-p.Context().Done()
		p.Conn.Reader().Close()
		return nil
	})
	pub := dialing(t, Config{Wait: limit}, b.address)
	r := newReceipts()
	pub.Publish(text("events", "first"), r.ticket(0))
	peer := <-peers
	sub := &remote{conn: peer.Conn}
	ready := make(chan error)
	go func() { ready <- pub.Ready(t.Context()) }()
	both := zmtp.AppendSubscribe(zmtp.AppendSubscribe(nil, "other", true), "events", true)
	if _, err := sub.conn.NetConn().Write(both); err != nil {
		t.Fatal(err)
	}
	if err := <-ready; err != nil {
		t.Error(err)
	}
	sub.expect(t, "first")
	pub.Publish(text("events", "second"), r.ticket(1))
	sub.expect(t, "second")
	for i := range 2 {
		if x := r.one(t, i); x.Status != pluginapi.ReceiptConfirmed || x.Unrouted {
			t.Errorf("receipt %v", x)
		}
	}
}

func TestPubThatDialsNobody(t *testing.T) {
	b := listen(t, zmq4.Sub, outq.Limits{}, func(*peering.Peer) error { return nil })
	b.close(t) // its port is free
	pub := dialing(t, Config{Wait: 20 * time.Millisecond}, b.address)
	r := newReceipts()
	pub.Publish(text("events", "x"), r.ticket(0))
	x := r.one(t, 0)
	if x.Status != pluginapi.ReceiptRefused || !x.Fault.Transient || !strings.Contains(x.Fault.Message, b.address) ||
		!strings.Contains(x.Fault.Message, `"events"`) {
		t.Errorf("receipt %v", x)
	}
	var f *core.Fault
	if err := pub.Ready(t.Context()); !errors.As(err, &f) || !strings.Contains(f.Message, b.address) {
		t.Errorf("Ready: %v", err)
	}
}

func TestPrefixesAreBounded(t *testing.T) {
	var f filter
	var err error
	n := 0
	for ; err == nil && n <= maxPrefixes; n++ {
		err = f.set(fmt.Appendf(nil, "p%d", n), true)
	}
	if !errors.Is(err, errPrefixes) || n != maxPrefixes+1 {
		t.Errorf("%d prefixes: %v", n, err)
	}
	f = filter{}
	if err := f.set(make([]byte, maxPrefixBytes+1), true); !errors.Is(err, errPrefixes) {
		t.Errorf("a long prefix: %v", err)
	}
}
