// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/memtest"
	"github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/internal/memory/transport"
	"github.com/longshore-go/longshore/pluginapi"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// plenty is a window that no test uses up.
var plenty = pluginapi.Room{Messages: 1000, Bytes: 1 << 20}

// limit bounds what a test waits for on a busy machine.
const limit = 2 * time.Minute

// client is a transport in this process, called directly.
type client struct {
	t    *testing.T
	b    *memory.Broker
	conn pluginapi.Conn
	ctx  context.Context //nolint:containedctx // of the test
}

// connect configures and connects a transport.
func connect(t *testing.T, b *memory.Broker, set settings.Settings) *client {
	t.Helper()
	return resume(t, b, set, nil)
}

func resume(t *testing.T, b *memory.Broker, set settings.Settings, bytes []byte) *client {
	t.Helper()
	e, err := configure(b, set)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	conn, err := e.Connect(ctx, bytes)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, b: b, conn: conn, ctx: ctx}
	t.Cleanup(func() { c.close() })
	return c
}

func configure(b *memory.Broker, set settings.Settings) (pluginapi.Endpoint, error) {
	set.Address = "in process"
	raw, err := pluginapi.EncodeSettings(set)
	if err != nil {
		return nil, err
	}
	return transport.New(transport.Dial(b.Dial)).Configure(pluginapi.Settings{
		Options: pluginapi.NewOptions(raw), Endpoint: "mem", Generation: 1, Logger: slog.New(slog.DiscardHandler),
	})
}

// close closes the connection, once.
func (c *client) close() []byte {
	if c.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	bytes, err := c.conn.Close(ctx)
	if err != nil {
		c.t.Errorf("close: %v", err)
	}
	c.conn = nil
	return bytes
}

func (c *client) subscribe(name string) pluginapi.Subscription {
	c.t.Helper()
	s, err := c.conn.Subscribe(c.ctx, pluginapi.Registration{Name: name})
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// receive collects n deliveries.
func (c *client) receive(s pluginapi.Subscription, n int) []pluginapi.Delivery {
	c.t.Helper()
	var ds []pluginapi.Delivery
	for len(ds) < n {
		b, err := s.Receive(c.ctx, pluginapi.Room{Messages: n - len(ds), Bytes: 1 << 20})
		if err != nil {
			c.t.Fatalf("after %d of %d deliveries: %v", len(ds), n, err)
		}
		ds = append(ds, b.Deliveries...)
	}
	return ds
}

// nothing asserts that nothing is delivered for a while.
func (c *client) nothing(s pluginapi.Subscription) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, 50*time.Millisecond)
	defer cancel()
	b, err := s.Receive(ctx, plenty)
	if !errors.Is(err, context.DeadlineExceeded) {
		c.t.Fatalf("got %d deliveries, %v; want none", len(b.Deliveries), err)
	}
}

// settle gives one verdict and returns its result.
func (c *client) settle(s pluginapi.Subscription, d pluginapi.Delivery, v pluginapi.Verdict) pluginapi.ResultStatus {
	c.t.Helper()
	v.Handle = d.Handle
	rs := s.Settle(c.ctx, []pluginapi.Verdict{v})
	if len(rs) != 1 {
		c.t.Fatalf("got %d results", len(rs))
	}
	return rs[0].Status
}

func (c *client) ack(s pluginapi.Subscription, d pluginapi.Delivery) pluginapi.ResultStatus {
	c.t.Helper()
	return c.settle(s, d, pluginapi.Verdict{Kind: core.VerdictAck})
}

// publish publishes messages and waits for their receipts.
func (c *client) publish(msgs ...pluginapi.Outgoing) []pluginapi.Receipt {
	c.t.Helper()
	return c.wait(c.start(msgs...))
}

// start publishes and returns without waiting.
func (c *client) start(msgs ...pluginapi.Outgoing) chan indexed {
	done := make(chan indexed, len(msgs)+1)
	c.conn.Publish(c.ctx, msgs, func(i int, r pluginapi.Receipt) { done <- indexed{i, r} })
	done <- indexed{i: len(msgs)}
	return done
}

type indexed struct {
	i int
	r pluginapi.Receipt
}

func (c *client) wait(done chan indexed) []pluginapi.Receipt {
	c.t.Helper()
	var rs []pluginapi.Receipt
	n := cap(done) - 1
	rs = make([]pluginapi.Receipt, n)
	for left := n + 1; left > 0; left-- {
		select {
		case d := <-done:
			if d.i < n {
				rs[d.i] = d.r
			}
		case <-c.ctx.Done():
			c.t.Fatalf("%d receipts missing: %v", left, context.Cause(c.ctx))
		}
	}
	return rs
}

func (c *client) peer() *memory.Client {
	c.t.Helper()
	p, err := c.b.Client(c.ctx, "mem")
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

func payloads(ds []pluginapi.Delivery) []string {
	var ps []string
	for _, d := range ds {
		ps = append(ps, string(d.Message.Payload))
	}
	return ps
}

func out(name, payload string) pluginapi.Outgoing {
	return pluginapi.Outgoing{Message: core.Message{Name: name, Payload: []byte(payload)}, Purpose: pluginapi.PurposeApplication}
}

// states returns where each message of a queue is.
func states(b *memory.Broker, queue string) []string {
	var ss []string
	for _, s := range b.All(queue) {
		ss = append(ss, string(s.Payload)+" "+s.State.String())
	}
	return ss
}

func broker(t *testing.T) *memory.Broker {
	t.Helper()
	return memtest.Broker(t)
}
