// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// A broker that takes nothing, and asks without end, has no answers pile up.
func TestAnswersDoNotPileUp(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address(), Token: core.NewSecret(strings.Repeat("x", 1000))})
	c, _, p := brokerOf(t, srv, s)
	h := consumer{heard: newHeard()}
	id := c.Consumer(h)
	c.Send(func(dst []byte) []byte { return append(dst, make([]byte, 32<<20)...) }) // more than the buffers of a connection hold
	eventually(t, "it is being written", func() bool { c.out.mu.Lock(); defer c.out.mu.Unlock(); return c.out.flying > 0 })
	p.send(bytes.Repeat(append(frame(wire.TypePing, nil), challenge()...), 5000))
	p.send(message(int64(id), 1, 2, "last"))
	h.await(t, 1)
	c.out.mu.Lock()
	waits := string(c.out.buf)
	c.out.mu.Unlock()
	if n := len(waits); n == 0 || n > 2000 {
		t.Errorf("%d bytes of answers wait", n)
	}
}

// A connection on which nothing comes keeps no message that has come.
func TestIdleConnKeepsNoMessage(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	c, _, p := brokerOf(t, srv, s)
	h := keeper{newHeard(), make(chan weak.Pointer[byte], 1)}
	id := c.Consumer(h)
	p.send(message(int64(id), 1, 2, strings.Repeat("x", 1<<20)))
	payload := within(t, "the message", h.came)
	h.await(t, 1) // the pause
	eventually(t, "its memory is free", func() bool { runtime.GC(); return payload.Value() == nil })
}

// keeper takes note of where payloads lie.
type keeper struct {
	*heard
	came chan weak.Pointer[byte]
}

func (k keeper) Entry(m *wire.Delivery) { k.came <- weak.Make(&m.Payload[0]) }
func (k keeper) Pause()                 { k.add("pause") }
func (k keeper) Active(bool)            {}
func (k keeper) Closed()                {}
func (k keeper) Lost(error)             {}

// Brokers that are not connected to any more are forgotten.
func TestPoolForgetsBrokers(t *testing.T) {
	srv, broker := serve(t), serve(t)
	s := subjectOf(t, Config{Address: srv.address(), Connections: 2})
	link := linked(t, srv, s)
	for range 2 {
		r := looksUp(t, s)
		link.send(located(number(link.expect(wire.TypeLookup), 2), 1, "pulsar://"+broker.host(), true, false))
		broker.admit().nc.Close()
		within(t, "the answer", r)
	}
	eventually(t, "nothing is left", func() bool {
		s.pool.mu.Lock()
		defer s.pool.mu.Unlock()
		return len(s.pool.conns)+len(s.pool.wanted) == 0
	})
}
