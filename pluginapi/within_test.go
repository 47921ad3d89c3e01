// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
)

func TestWider(t *testing.T) {
	top := core.Capabilities{
		Ack: core.AckSingle, Requeue: core.RequeueDelayed, MaxDelay: 100, MaxHold: 50, Reject: core.RejectDrops,
		Address: "*", Unsettled: core.UnsettledOnTimeout, Order: core.OrderPerScope,
	}
	for _, tc := range []struct {
		name string
		edit func(*core.Capabilities)
		want string
	}{
		{"the same", func(*core.Capabilities) {}, ""},
		{"no acks", func(c *core.Capabilities) { *c = core.Capabilities{} }, ""},
		{"cumulative acks", func(c *core.Capabilities) { c.Ack = core.AckCumulative }, "ack"},
		{"requeue now", func(c *core.Capabilities) { c.Requeue, c.MaxDelay = core.RequeueNow, 0 }, ""},
		{"shorter delays", func(c *core.Capabilities) { c.MaxDelay = 99 }, ""},
		{"longer delays", func(c *core.Capabilities) { c.MaxDelay = 101 }, "max_delay"},
		{"any delay", func(c *core.Capabilities) { c.MaxDelay = 0 }, "max_delay"},
		{"any hold", func(c *core.Capabilities) { c.MaxHold = 0 }, "max_hold"},
		{"extend", func(c *core.Capabilities) { c.Extend = true }, "extend"},
		{"another reject", func(c *core.Capabilities) { c.Reject = core.RejectDeadLetters }, "reject"},
		{"counts", func(c *core.Capabilities) { c.Counts = core.CountNative }, "counts"},
		{"an address of its own", func(c *core.Capabilities) { c.Address = "orders" }, ""},
		{"no address", func(c *core.Capabilities) { c.Address = "" }, ""},
		{"lost", func(c *core.Capabilities) { c.Unsettled = core.UnsettledLost }, ""},
		{"on resume", func(c *core.Capabilities) { c.Unsettled = core.UnsettledOnResume }, "unsettled"},
		{"durable", func(c *core.Capabilities) { c.Durable = true }, "durable"},
		{"rewinds", func(c *core.Capabilities) { c.Rewinds = true }, "rewinds"},
		{"total order", func(c *core.Capabilities) { c.Order = core.OrderTotal }, "order"},
	} {
		c := top
		tc.edit(&c)
		if got := wider(c, top, false); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	named := top
	named.Address = "orders"
	if got := wider(named, top, true); got != "address" {
		t.Errorf("another address than Inspect's: %q", got)
	}
}

func TestPublishesMore(t *testing.T) {
	top := core.Publishing{
		Confirms: core.ConfirmQueued, Retains: core.RetainProcess, MaxDelay: 10, Headers: core.HeadersNativeText,
		MaxBytes: 100, MaxHeaders: 5,
	}
	for _, tc := range []struct {
		edit func(*core.Publishing)
		want string
	}{
		{func(*core.Publishing) {}, ""},
		{func(p *core.Publishing) { *p = core.Publishing{MaxBytes: 1, MaxHeaders: 1} }, ""},
		{func(p *core.Publishing) { p.Confirms = core.ConfirmStored }, "confirms"},
		{func(p *core.Publishing) { p.Retains = core.RetainTransport }, "retains"},
		{func(p *core.Publishing) { p.MaxDelay = 11 }, "max_delay"},
		{func(p *core.Publishing) { p.Dedups = true }, "dedups"},
		{func(p *core.Publishing) { p.Repeats = true }, "repeats"},
		{func(p *core.Publishing) { p.Headers = core.HeadersNativeBytes }, "headers"},
		{func(p *core.Publishing) { p.Headers = core.HeadersEnveloped }, "headers"},
		{func(p *core.Publishing) { p.MaxBytes = 0 }, "max_bytes"},
		{func(p *core.Publishing) { p.MaxBytes = 101 }, "max_bytes"},
		{func(p *core.Publishing) { p.MaxHeaders = 6 }, "max_headers"},
	} {
		p := top
		tc.edit(&p)
		if got := publishesMore(p, top); got != tc.want {
			t.Errorf("%+v: %q, want %q", p, got, tc.want)
		}
	}
}

// Lying within is an order: a set lies within itself, and what lies within what
// lies within a ceiling lies within the ceiling.
func TestWithinIsAnOrder(t *testing.T) {
	set := rapid.Custom(func(t *rapid.T) core.Capabilities {
		limit := rapid.Int64Range(0, 3)
		c := core.Capabilities{
			Ack:       core.AckMode(rapid.IntRange(0, 2).Draw(t, "ack")),
			Requeue:   core.RequeueMode(rapid.IntRange(0, 2).Draw(t, "requeue")),
			Extend:    rapid.Bool().Draw(t, "extend"),
			Reject:    core.RejectMode(rapid.IntRange(0, 2).Draw(t, "reject")),
			Counts:    core.CountMode(rapid.IntRange(0, 1).Draw(t, "counts")),
			Unsettled: core.Unsettled(rapid.IntRange(0, 3).Draw(t, "unsettled")),
			Durable:   rapid.Bool().Draw(t, "durable"),
			Order:     core.OrderMode(rapid.IntRange(0, 2).Draw(t, "order")),
			Address:   rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "address"),
		}
		if c.Requeue == core.RequeueDelayed {
			c.MaxDelay = time.Duration(limit.Draw(t, "delay"))
		}
		if c.Ack != core.AckNone {
			c.MaxHold = time.Duration(limit.Draw(t, "hold"))
		}
		return c
	}).Filter(func(c core.Capabilities) bool { return c.Valid() == nil })
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := set.Draw(t, "a"), set.Draw(t, "b"), set.Draw(t, "c")
		for _, named := range []bool{true, false} {
			if f := wider(a, a, named); f != "" {
				t.Fatalf("a set is wider than itself in %s", f)
			}
			if wider(a, b, named) == "" && wider(b, c, named) == "" && wider(a, c, named) != "" {
				t.Fatalf("a within b within c, and not within c: %s", wider(a, c, named))
			}
		}
	})
}
