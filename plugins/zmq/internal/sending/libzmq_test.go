// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/internal/interop/libzmq"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
)

func TestPushToLibzmq(t *testing.T) {
	push := newPush(Config{})
	b := listen(t, zmq4.Push, outq.Limits{}, push.Serve)
	p := libzmq.Start(t)
	one := p.Open("PULL", libzmq.Options{Connect: []string{b.address}})
	two := p.Open("PULL", libzmq.Options{Connect: []string{b.address}})
	zmqtest.Until(t, "both are attached", func() bool { return push.peers() == 2 })
	r := newReceipts()
	for i := range 4 {
		push.Publish(text("jobs", fmt.Sprint(i)), r.ticket(i))
	}
	seen := map[string]int{}
	for _, s := range []*libzmq.Socket{one, two} {
		for range 2 {
			f := s.Receive(1)[0]
			if len(f) != 3 || string(f[0]) != "jobs" || len(f[1]) != 0 {
				t.Errorf("frames %q", f)
			}
			seen[string(f[2])]++
		}
	}
	if len(seen) != 4 {
		t.Errorf("messages %v, want four, each once", seen)
	}
	push.Close(t.Context())
}

// TestPushLibzmqKilled kills a peer while messages are written to it: each
// message is confirmed or unknown, and none but the unknown one and those in the
// dead peer's buffers is missing.
func TestPushLibzmqKilled(t *testing.T) {
	push := newPush(Config{Wait: limit})
	b := listen(t, zmq4.Push, outq.Limits{}, push.Serve)
	p := libzmq.Start(t)
	p.Open("PULL", libzmq.Options{Connect: []string{b.address}, Set: map[string]int{"RCVHWM": 1}, Deaf: true})
	zmqtest.Until(t, "it is attached", func() bool { return push.peers() == 1 })
	r := newReceipts()
	const n = 60
	body := strings.Repeat("x", 1<<20)
	for i := range n {
		push.Publish(text("jobs", fmt.Sprintf("%02d", i)+body), r.ticket(i))
	}
	r.await(t, 1)
	before := r.count(pluginapi.ReceiptConfirmed)
	p.Kill()
	zmqtest.Until(t, "its end is seen", func() bool { return push.peers() == 0 })
	got := join(t, b.address, zmq4.Pull, "").drain()
	r.await(t, n)
	if confirmed := r.count(pluginapi.ReceiptConfirmed); confirmed != n || before == n {
		t.Errorf("%d confirmed, %d of them before the end, of %d", confirmed, before, n)
	}
	last := ""
	for last != fmt.Sprint(n-1) {
		m := (<-got)[:2]
		if m <= last {
			t.Fatalf("%s came behind %s", m, last)
		}
		last = m
	}
	push.Close(t.Context())
}

func TestPubToLibzmq(t *testing.T) {
	pub := NewPub(Config{})
	b := listen(t, zmq4.Pub, outq.Limits{}, pub.Serve)
	p := libzmq.Start(t)
	s := p.Open("SUB", libzmq.Options{Connect: []string{b.address}, Subscribe: []string{"events"}})
	zmqtest.Until(t, "it has subscribed", func() bool { return pub.heardFrom() == 1 })
	pub.Publish(text("other", "x"), outq.Ticket{})
	pub.Publish(text("events.eu", "y"), outq.Ticket{})
	if f := s.Receive(1)[0]; string(f[0]) != "events.eu" || string(f[2]) != "y" {
		t.Errorf("frames %q", f)
	}
	pub.Close(t.Context())
}
