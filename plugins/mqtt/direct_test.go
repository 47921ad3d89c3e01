// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// direct is an endpoint that is called without a host.
type direct struct {
	t     testing.TB
	ctx   context.Context //nolint:containedctx // of the test
	conn  pluginapi.Conn
	log   *servicetest.Log
	close func() // once
}

// at are settings of an endpoint at a URL.
func at(url, client string) settings.Settings {
	return settings.Settings{URL: settings.URL(url), ClientID: client}
}

// topics are registrations with the options by default.
func topics(t testing.TB, names ...string) pluginapi.Usage {
	t.Helper()
	var rs []pluginapi.Registration
	for _, n := range names {
		rs = append(rs, registration(t, n, settings.SubscribeOptions{}))
	}
	return usage(rs...)
}

// unopened is an endpoint that is used so, and is not connected yet.
func unopened(t testing.TB, set settings.Settings, u pluginapi.Usage) (*direct, pluginapi.Endpoint) {
	t.Helper()
	d := &direct{t: t, log: &servicetest.Log{}}
	e := servicetest.Configure(t, mqtt.New(), set, nil, d.log)
	e.Inspect(u)
	return d, e
}

// late is a context whose deadline passes when a test says so.
type late struct {
	context.Context //nolint:containedctx // it is one
	passed          chan struct{}
}

// overdue returns such a context, and what has its deadline pass.
func overdue(t testing.TB) (ctx context.Context, pass func()) {
	l := late{t.Context(), make(chan struct{})}
	pass = sync.OnceFunc(func() { close(l.passed) })
	t.Cleanup(pass)
	return l, pass
}

func (l late) Done() <-chan struct{} { return l.passed }

func (l late) Err() error {
	select {
	case <-l.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// try connects an endpoint that is used so.
func try(t testing.TB, set settings.Settings, u pluginapi.Usage) (*direct, error) {
	t.Helper()
	d, e := unopened(t, set, u)
	within, cancel := context.WithTimeout(context.Background(), servicetest.Limit)
	defer cancel()
	c, err := e.Connect(within, nil)
	if err != nil {
		return d, err
	}
	d.conn = c
	ctx, end := context.WithTimeout(context.Background(), servicetest.Limit)
	d.ctx = ctx
	d.close = sync.OnceFunc(func() {
		defer end()
		if _, err := c.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	t.Cleanup(d.close)
	return d, nil
}

// opened connects an endpoint that is used so.
func opened(t testing.TB, set settings.Settings, u pluginapi.Usage) *direct {
	t.Helper()
	d, err := try(t, set, u)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// connectAs connects an endpoint with a client id, whose use nobody has inspected.
func connectAs(t testing.TB, url, client string, change ...func(*settings.Settings)) *direct {
	t.Helper()
	set := at(url, client)
	for _, f := range change {
		f(&set)
	}
	return opened(t, set, pluginapi.Usage{})
}

// subscribe opens a subscription, which is closed before the endpoint is.
func (d *direct) subscribe(r pluginapi.Registration) pluginapi.Subscription {
	d.t.Helper()
	s, err := d.conn.Subscribe(d.ctx, r)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

// receive receives n deliveries, as copies, and all voids before them.
func (d *direct) receive(s pluginapi.Subscription, n int) (ds []pluginapi.Delivery, voids []pluginapi.Void) {
	d.t.Helper()
	for len(ds) < n {
		b, err := s.Receive(d.ctx, pluginapi.Room{Messages: n - len(ds), Bytes: 1 << 20})
		voids = append(voids, b.Voids...)
		for _, x := range b.Deliveries {
			x.Message, x.Carry = x.Message.Clone(), bytes.Clone(x.Carry)
			ds = append(ds, x)
		}
		if b.Memory != nil {
			b.Memory.Release()
		}
		if err != nil {
			d.t.Fatalf("received %d of %d: %v\n%s", len(ds), n, err, d.log)
		}
	}
	return ds, voids
}

// one receives one delivery, as a copy.
func (d *direct) one(s pluginapi.Subscription) pluginapi.Delivery {
	d.t.Helper()
	ds, _ := d.receive(s, 1)
	return ds[0]
}

// ack acks deliveries.
func (d *direct) ack(s pluginapi.Subscription, ds ...pluginapi.Delivery) {
	d.t.Helper()
	vs := make([]pluginapi.Verdict, len(ds))
	for i := range ds {
		vs[i] = pluginapi.Verdict{Handle: ds[i].Handle, Kind: core.VerdictAck}
	}
	for i, r := range s.Settle(d.ctx, vs) {
		if r.Status != pluginapi.ResultDone {
			d.t.Errorf("ack %d: %+v", i, r)
		}
	}
}

// texts are the payloads of deliveries.
func texts(ds []pluginapi.Delivery) []string {
	var out []string
	for _, d := range ds {
		out = append(out, string(d.Message.Payload))
	}
	return out
}

// options are options of a message.
func options(t testing.TB, o settings.PublishOptions) pluginapi.Options {
	t.Helper()
	x, err := pluginapi.EncodeOptions(o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// outgoing returns messages with the payloads 0, 1, ... to a topic.
func outgoing(t testing.TB, topic string, n int, o settings.PublishOptions) []pluginapi.Outgoing {
	t.Helper()
	msgs := make([]pluginapi.Outgoing, n)
	for i := range msgs {
		msgs[i] = servicetest.Message(topic, fmt.Sprint(i))
		msgs[i].Options = options(t, o)
	}
	return msgs
}

// publish publishes and returns the receipts.
func (d *direct) publish(msgs ...pluginapi.Outgoing) []pluginapi.Receipt {
	d.t.Helper()
	return servicetest.Publish(d.ctx, d.t, d.conn, msgs...)
}

// confirmed publishes what must be confirmed.
func (d *direct) confirmed(msgs ...pluginapi.Outgoing) []pluginapi.Receipt {
	d.t.Helper()
	rs := d.publish(msgs...)
	for i, r := range rs {
		if r.Status != pluginapi.ReceiptConfirmed {
			d.t.Fatalf("message %d: %d %v", i, r.Status, r.Fault)
		}
	}
	return rs
}

// eventually polls until ok says so.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	limit := time.NewTimer(servicetest.Limit / 3)
	defer limit.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-limit.C:
			t.Fatalf("never: %s", what)
		}
	}
}

// states are the link states that an endpoint has told.
type states struct {
	mu   sync.Mutex
	told []pluginapi.LinkState
}

func (d *direct) states() *states {
	s := &states{}
	d.conn.(pluginapi.LinkReporter).ReportLink(func(l pluginapi.LinkState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, l)
	})
	return s
}

func (s *states) all() []pluginapi.LinkState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told)
}

func (s *states) last() pluginapi.LinkState {
	all := s.all()
	return all[len(all)-1]
}
