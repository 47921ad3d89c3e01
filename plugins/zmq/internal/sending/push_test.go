// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
)

func (p *Push) peers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.members)
}

// newPush returns a Push that takes nothing back from a peer whose writer is kept
// from running for a while.
func newPush(c Config) *Push {
	p := NewPush(c)
	p.stall.after = limit
	return p
}

func TestPushTwoPeersFourMessages(t *testing.T) {
	push := newPush(Config{})
	b := listen(t, zmq4.Push, outq.Limits{}, push.Serve)
	one, two := join(t, b.address, zmq4.Pull, ""), join(t, b.address, zmq4.Pull, "")
	zmqtest.Until(t, "both are attached", func() bool { return push.peers() == 2 })
	r := newReceipts()
	for i := range 4 {
		push.Publish(text("jobs", fmt.Sprint(i)), r.ticket(i))
	}
	r.await(t, 4)
	if n := r.count(pluginapi.ReceiptConfirmed); n != 4 {
		t.Errorf("%d confirmed", n)
	}
	push.Close(t.Context())
	var got []int
	seen := map[string]int{}
	done := make(chan struct{})
	go func() { defer close(done); b.close(t) }()
	for _, x := range []*remote{one, two} {
		n := 0
		for payload := range x.drain() {
			seen[payload]++
			n++
		}
		x.close()
		got = append(got, n)
	}
	<-done
	if len(seen) != 4 || got[0] != 2 || got[1] != 2 {
		t.Errorf("peers have %v, messages %v, want two each, each once", got, seen)
	}
}

func TestZ01ThreePeersShare(t *testing.T) {
	const n = 3000
	push := newPush(Config{})
	b := listen(t, zmq4.Push, outq.Limits{}, push.Serve)
	var ends []<-chan string
	for range 3 {
		ends = append(ends, join(t, b.address, zmq4.Pull, "").drain())
	}
	zmqtest.Until(t, "all are attached", func() bool { return push.peers() == 3 })
	r := newReceipts()
	for i := range n {
		push.Publish(text("jobs", fmt.Sprintf("m%04d", i)), r.ticket(i))
	}
	r.await(t, n)
	seen := map[string]bool{}
	counts := make([]int, 3)
	for total := 0; total < n; {
		for i, c := range ends {
			select {
			case p := <-c:
				if seen[p] {
					t.Fatalf("%s came twice", p)
				}
				seen[p] = true
				counts[i]++
				total++
			case <-time.After(time.Millisecond):
			}
		}
	}
	for _, c := range counts {
		if c < 600 {
			t.Errorf("shares %v, want at least 600 each", counts)
		}
	}
	push.Close(t.Context())
}

// TestZ02NoPeer has nobody there for the default of five seconds.
func TestZ02NoPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		push := NewPush(Config{Address: at("tcp://127.0.0.1:5901")})
		r := newReceipts()
		start := time.Now()
		push.Publish(text("jobs", "x"), r.ticket(0))
		time.Sleep(2 * time.Second)
		push.Publish(text("jobs", "y"), r.ticket(1))
		time.Sleep(DefaultWait - 2*time.Second - time.Millisecond)
		synctest.Wait()
		if x := r.of(0); len(x) > 0 {
			t.Fatalf("receipts after %v: %v", time.Since(start), x)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		x := r.of(0)
		if len(x) != 1 || len(r.of(1)) > 0 {
			t.Fatalf("receipts after %v: %v and %v, want that of the first", time.Since(start), x, r.of(1))
		}
		if f := x[0].Fault; x[0].Status != pluginapi.ReceiptRefused || f.Code != core.FaultUnavailable || !f.Transient ||
			!strings.Contains(f.Message, `"jobs"`) || !strings.Contains(f.Message, "no connected peer at tcp://127.0.0.1:5901 after 5s") {
			t.Errorf("receipt %+v, fault %v", x[0], f)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(r.of(1)) != 1 {
			t.Error("the second has no receipt five seconds after it came")
		}
		push.Close(t.Context())
	})
}

func TestZ02WorksOnceAPeerAppears(t *testing.T) {
	push := newPush(Config{Wait: 20 * time.Millisecond})
	b := listen(t, zmq4.Push, outq.Limits{}, push.Serve)
	r := newReceipts()
	push.Publish(text("jobs", "lost"), r.ticket(0))
	if x := r.one(t, 0); x.Status != pluginapi.ReceiptRefused {
		t.Fatalf("receipt %v", x)
	}
	peer := join(t, b.address, zmq4.Pull, "")
	zmqtest.Until(t, "it is attached", func() bool { return push.peers() == 1 })
	push.Publish(text("jobs", "kept"), r.ticket(1))
	peer.expect(t, "kept")
	if x := r.one(t, 1); x.Status != pluginapi.ReceiptConfirmed {
		t.Errorf("receipt %v", x)
	}
	peer.close()
	zmqtest.Until(t, "its end is seen without a write", func() bool { return push.peers() == 0 })
	push.Publish(text("jobs", "nobody"), r.ticket(2))
	if x := r.one(t, 2); x.Status != pluginapi.ReceiptRefused {
		t.Errorf("receipt with the peer gone: %v", x)
	}
	push.Close(t.Context())
}

func TestPushWaitsForAPeerInOrder(t *testing.T) {
	push := newPush(Config{Wait: limit})
	b := listen(t, zmq4.Push, outq.Limits{Messages: 2}, push.Serve)
	r := newReceipts()
	for i := range 100 {
		push.Publish(text("jobs", fmt.Sprint(i)), r.ticket(i))
	}
	peer := join(t, b.address, zmq4.Pull, "")
	for i := range 100 {
		peer.expect(t, fmt.Sprint(i))
	}
	r.await(t, 100)
	if n := r.count(pluginapi.ReceiptConfirmed); n != 100 {
		t.Errorf("%d confirmed", n)
	}
	push.Close(t.Context())
}

func TestPushKilledPeersMessagesGoToAnother(t *testing.T) {
	push := newPush(Config{Wait: limit})
	b := listen(t, zmq4.Push, outq.Limits{}, push.Serve)
	dead := join(t, b.address, zmq4.Pull, "")
	zmqtest.Until(t, "it is attached", func() bool { return push.peers() == 1 })
	r := newReceipts()
	const n = 40
	body := strings.Repeat("x", 1<<20)
	for i := range n {
		push.Publish(text("jobs", fmt.Sprintf("%02d", i)+body), r.ticket(i))
	}
	r.await(t, 1)
	alive := join(t, b.address, zmq4.Pull, "")
	zmqtest.Until(t, "the other is attached", func() bool { return push.peers() == 2 })
	push.Publish(text("jobs", "last"), r.ticket(n))
	alive.expect(t, "last")
	came := alive.drain()
	before := r.count(pluginapi.ReceiptConfirmed) - 1 // without the last one
	dead.close()
	r.await(t, n+1)
	var got []string
	for i := range n {
		if x := r.one(t, i); x.Status != pluginapi.ReceiptConfirmed {
			t.Errorf("receipt of %d: %v", i, x)
		}
	}
	for len(got) == 0 || got[len(got)-1] != fmt.Sprint(n-1) {
		got = append(got, (<-came)[:2])
	}
	if first, _ := strconv.Atoi(got[0]); len(got) != n-first || before > first {
		t.Errorf("%d confirmed before the end, the other peer has %v", before, got)
	}
	for i := 1; i < len(got); i++ {
		if got[i] <= got[i-1] {
			t.Errorf("order %v", got)
		}
	}
	push.Close(t.Context())
}

func TestZ12CloseWithABlockedPeer(t *testing.T) {
	push := NewPush(Config{Linger: 50 * time.Millisecond})
	b := listen(t, zmq4.Push, outq.Limits{Messages: 20}, push.Serve)
	join(t, b.address, zmq4.Pull, "") // and never reads
	zmqtest.Until(t, "it is attached", func() bool { return push.peers() == 1 })
	r := newReceipts()
	const n = 60
	body := strings.Repeat("x", 1<<20)
	for i := range n {
		push.Publish(text("jobs", body), r.ticket(i))
	}
	start := time.Now()
	push.Close(t.Context())
	b.close(t)
	if d := time.Since(start); d > limit/2 {
		t.Errorf("Close takes %v", d)
	}
	r.await(t, n)
	if c, u, f := r.count(pluginapi.ReceiptConfirmed), r.count(pluginapi.ReceiptUnknown), r.count(pluginapi.ReceiptRefused); u > 0 || f == 0 || c+f != n {
		t.Errorf("%d confirmed, %d unknown, %d refused of %d", c, u, f, n)
	}
	if x := r.one(t, n-1); x.Fault.Code != core.FaultClosed || !strings.Contains(x.Fault.Message, "not sent") {
		t.Errorf("the last: %v", x.Fault)
	}
	push.Publish(text("jobs", "late"), r.ticket(n))
	if x := r.one(t, n); x.Fault.Code != core.FaultClosed {
		t.Errorf("behind Close: %v", x)
	}
}

func TestSend(t *testing.T) {
	push := newPush(Config{Wait: 30 * time.Millisecond, Address: at("tcp://h:1")})
	b := listen(t, zmq4.Push, outq.Limits{Messages: 1}, push.Serve)
	r := newReceipts()
	if p, f := push.Send(t.Context(), text("rpc", "x"), r.ticket(0)); p != nil || f == nil || !strings.Contains(f.Message, "tcp://h:1") {
		t.Fatalf("without a peer: %v, %v", p, f)
	}
	peer := join(t, b.address, zmq4.Pull, "")
	zmqtest.Until(t, "it is attached", func() bool { return push.peers() == 1 })
	if p, f := push.Send(t.Context(), text("rpc", strings.Repeat("x", 16<<20)), r.ticket(1)); p == nil {
		t.Fatal(f)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	if p, f := push.Send(ctx, text("rpc", "y"), r.ticket(2)); p != nil || f.Code != core.FaultTimeout {
		t.Errorf("without room: %v, %v", p, f)
	}
	sent := make(chan *core.Fault)
	go func() {
		_, f := push.Send(t.Context(), text("rpc", "z"), r.ticket(3))
		sent <- f
	}()
	if _, err := peer.next(); err != nil {
		t.Fatal(err)
	}
	if f := <-sent; f != nil {
		t.Error(f)
	}
	peer.expect(t, "z")
	push.Close(t.Context())
}

func TestEmptyMessages(t *testing.T) {
	push := newPush(Config{})
	b := listen(t, zmq4.Push, outq.Limits{}, push.Serve)
	peer := join(t, b.address, zmq4.Pull, "")
	zmqtest.Until(t, "it is attached", func() bool { return push.peers() == 1 })
	push.Publish(&core.Message{}, outq.Ticket{})
	m, err := peer.next()
	if err != nil || m.Name != "" || len(m.Headers) != 0 || len(m.Payload) != 0 {
		t.Errorf("%v came, %v", m, err)
	}
	push.Close(t.Context())
}

// TestPushStoppedPeerHoldsNothingUp has a peer that never reads beside one that
// does: all but what is written or being written to the first reaches the other.
func TestPushStoppedPeerHoldsNothingUp(t *testing.T) {
	push := newPush(Config{})
	push.stall.after = 50 * time.Millisecond
	b := listen(t, zmq4.Push, outq.Limits{}, push.Serve)
	join(t, b.address, zmq4.Pull, "") // and never reads
	got := join(t, b.address, zmq4.Pull, "").drain()
	zmqtest.Until(t, "both are attached", func() bool { return push.peers() == 2 })
	r := newReceipts()
	const n = 60
	body := strings.Repeat("x", 1<<20)
	for i := range n {
		push.Publish(text("jobs", fmt.Sprintf("%02d", i)+body), r.ticket(i))
	}
	r.await(t, n-1)
	if c := r.count(pluginapi.ReceiptConfirmed); c < n-1 {
		t.Errorf("%d of %d confirmed", c, n)
	}
	seen := map[string]bool{}
	for len(seen) <= n/2 {
		p := (<-got)[:2]
		if seen[p] {
			t.Fatalf("%s came twice", p)
		}
		seen[p] = true
	}
	push.Close(t.Context())
}

// TestPushAllocations publishes in windows as a host does.
func TestPushAllocations(t *testing.T) {
	push := newPush(Config{})
	b := listen(t, zmq4.Push, outq.Limits{}, push.Serve)
	for range 2 {
		go io.Copy(io.Discard, join(t, b.address, zmq4.Pull, "").conn.NetConn())
	}
	zmqtest.Until(t, "both are attached", func() bool { return push.peers() == 2 })
	const batch = 500
	done := make(chan struct{}, batch)
	ticket := outq.Ticket{Done: func(int, pluginapi.Receipt) { done <- struct{}{} }}
	m := text("jobs", strings.Repeat("x", 512))
	if n := testing.AllocsPerRun(50, func() {
		for range batch {
			push.Publish(m, ticket)
		}
		for range batch {
			<-done
		}
	}); n > batch/10 {
		t.Errorf("%.0f allocations for %d messages", n, batch)
	}
	push.Close(t.Context())
}
