// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// routed is a Router's endpoint, which remembers who came.
type routed struct {
	*Router
	*bound
	mu      sync.Mutex
	come    [][]byte
	refused []error
	watch   bool // peers' ends are seen; else the reader waits for Close
}

func newRouted(tb testing.TB, watch bool, limits outq.Limits) *routed {
	r := &routed{Router: NewRouter(Config{Address: at("tcp://here:1")}), watch: watch}
	r.bound = listen(tb, zmq4.Router, limits, func(p *peering.Peer) error {
		id, err := r.Attach(p)
		r.mu.Lock()
		if err != nil {
			r.refused = append(r.refused, err)
			r.mu.Unlock()
			return err
		}
		r.come = append(r.come, id)
		r.mu.Unlock()
		if r.watch {
			err = p.Read(func(*zmtp.Frames) error { return nil }, func() {})
		} else {
			<-p.Context().Done()
			p.Conn.Reader().Close()
		}
		r.Detach(p, err)
		return err
	})
	return r
}

// came returns the identity of the n-th peer.
func (r *routed) came(tb testing.TB, n int) (id []byte) {
	tb.Helper()
	zmqtest.Until(tb, "a peer is attached", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.come) > n {
			id = r.come[n]
		}
		return id != nil
	})
	return id
}

func (r *routed) names(id []byte) string { return "zmq-reply:" + hex.EncodeToString(id) }

func TestRouterByIdentity(t *testing.T) {
	r := newRouted(t, true, outq.Limits{})
	named := join(t, r.address, zmq4.Dealer, "worker")
	if id := r.came(t, 0); string(id) != "worker" {
		t.Fatalf("identity %q", id)
	}
	minted := join(t, r.address, zmq4.Req, "")
	id := r.came(t, 1)
	if len(id) != 16 {
		t.Fatalf("identity %x, want 16 bytes", id)
	}
	got := newReceipts()
	r.Publish([]byte("worker"), text("zmq-reply:x", "one"), got.ticket(0))
	r.Publish(id, text(r.names(id), "two"), got.ticket(1))
	named.expect(t, "one")
	minted.expect(t, "two")
	if list := minted.frames; len(list) != 4 || list[0] != "" || list[1] != "reply" {
		t.Errorf("REQ is sent %q", list)
	}
	got.await(t, 2)
	if n := got.count(pluginapi.ReceiptConfirmed); n != 2 {
		t.Errorf("%d confirmed", n)
	}

	r.Publish([]byte("nobody"), text("zmq-reply:6e6f", "x"), got.ticket(2))
	named.close()
	zmqtest.Until(t, "it is gone", func() bool {
		r.Router.mu.Lock()
		defer r.Router.mu.Unlock()
		return len(r.peers) == 1
	})
	r.Publish([]byte("worker"), text("zmq-reply:776f", "x"), got.ticket(3))
	for i, name := range map[int]string{2: "zmq-reply:6e6f", 3: "zmq-reply:776f"} {
		x := got.one(t, i)
		if x.Status != pluginapi.ReceiptRefused || x.Fault.Code != core.FaultNotFound || x.Fault.Transient ||
			!strings.Contains(x.Fault.Message, name) || !strings.Contains(x.Fault.Message, "gone") {
			t.Errorf("receipt %d: %v", i, x)
		}
	}
	r.Close(t.Context())
	r.Publish(id, text("zmq-reply:1", "x"), got.ticket(4))
	if x := got.one(t, 4); x.Fault.Code != core.FaultClosed {
		t.Errorf("behind Close: %v", x)
	}
}

func TestRouterRefusesASecondOfOneIdentity(t *testing.T) {
	r := newRouted(t, true, outq.Limits{})
	first := join(t, r.address, zmq4.Dealer, "same")
	r.came(t, 0)
	second := join(t, r.address, zmq4.Dealer, "same")
	if _, err := second.next(); err == nil {
		t.Error("the second stays")
	}
	r.mu.Lock()
	var twice *IdentityError
	if len(r.refused) != 1 || !errors.As(r.refused[0], &twice) || twice.Peer == twice.Holder ||
		!strings.Contains(twice.Error(), first.conn.NetConn().LocalAddr().String()) ||
		!strings.Contains(twice.Error(), second.conn.NetConn().LocalAddr().String()) {
		t.Errorf("refused %v", r.refused)
	}
	r.mu.Unlock()
	r.Publish([]byte("same"), text("zmq-reply:1", "x"), outq.Ticket{})
	first.expect(t, "x")
}

// TestRouterHandsOver has a reader that does not see the former peer's end.
func TestRouterHandsOver(t *testing.T) {
	r := newRouted(t, false, outq.Limits{})
	former := join(t, r.address, zmq4.Dealer, "same")
	r.came(t, 0)
	former.close()
	zmqtest.Until(t, "its end has arrived", func() bool {
		for _, p := range r.peering.Peers() {
			return p.HungUp()
		}
		return false
	})
	later := join(t, r.address, zmq4.Dealer, "same")
	r.came(t, 1)
	zmqtest.Until(t, "the former one is closed", func() bool { return len(r.peering.Peers()) == 1 })
	got := newReceipts()
	r.Publish([]byte("same"), text("zmq-reply:1", "x"), got.ticket(0))
	later.expect(t, "x")
	if x := got.one(t, 0); x.Status != pluginapi.ReceiptConfirmed {
		t.Errorf("receipt %v", x)
	}
}

func TestRouterFullQueue(t *testing.T) {
	r := newRouted(t, true, outq.Limits{Messages: 1})
	join(t, r.address, zmq4.Dealer, "busy")
	r.came(t, 0)
	got := newReceipts()
	r.Publish([]byte("busy"), text("zmq-reply:62", strings.Repeat("x", 16<<20)), got.ticket(0))
	r.Publish([]byte("busy"), text("zmq-reply:62", "x"), got.ticket(1))
	x := got.one(t, 1)
	if x.Status != pluginapi.ReceiptRefused || x.Fault.Code != core.FaultExhausted || !x.Fault.Transient ||
		!strings.Contains(x.Fault.Message, "zmq-reply:62") {
		t.Errorf("receipt %v", x)
	}
}

// A peer that does not read its replies holds up nobody: each reply has its
// receipt at once, until its queue is full. What it was not sent when it goes is
// counted and told in one line that names it.
func TestRouterPeerThatDoesNotRead(t *testing.T) {
	r := newRouted(t, true, outq.Limits{Messages: 10})
	var log logged
	r.config.Log = log.logger()
	deaf, reader := join(t, r.address, zmq4.Dealer, "deaf"), join(t, r.address, zmq4.Dealer, "reader")
	r.came(t, 1)
	payload := []byte(strings.Repeat("x", 1<<20))
	got := newReceipts()
	for i := range 40 {
		r.Publish([]byte("deaf"), &core.Message{Name: "zmq-reply:64", Payload: payload}, got.ticket(i))
		if len(got.of(i)) != 1 {
			t.Fatalf("reply %d has no receipt", i)
		}
	}
	clear(payload) // which are the caller's again
	confirmed, refused := got.count(pluginapi.ReceiptConfirmed), got.one(t, 39)
	if confirmed < 10 || refused.Status != pluginapi.ReceiptRefused || refused.Fault.Code != core.FaultExhausted {
		t.Errorf("%d confirmed, the last one is %v", confirmed, refused)
	}
	r.Publish([]byte("reader"), text("zmq-reply:72", "y"), got.ticket(100))
	reader.expect(t, "y")

	deaf.close()
	zmqtest.Until(t, "what it was not sent is counted", func() bool { return r.Lost() > 0 })
	if lost := int(r.Lost()); lost > 10 || lost > confirmed {
		t.Errorf("%d lost of %d", lost, confirmed)
	}
	zmqtest.Until(t, "it is told", func() bool { return strings.Contains(log.text(), "replies were not sent") })
	if text := log.text(); strings.Count(text, "\n") != 1 || !strings.Contains(text, deaf.conn.NetConn().LocalAddr().String()) {
		t.Errorf("logged %s", text)
	}
}

func TestRouterRepliesAreTheCallersAgain(t *testing.T) {
	r := newRouted(t, true, outq.Limits{})
	p := join(t, r.address, zmq4.Req, "p")
	r.came(t, 0)
	for _, size := range []int{10, 1000, 3000, 20_000, 3 << 20} {
		m := core.Message{Name: "zmq-reply:70", Payload: []byte(strings.Repeat("x", size))}
		r.Publish([]byte("p"), &m, outq.Ticket{})
		clear(m.Payload)
		p.expect(t, strings.Repeat("x", size))
	}
}
