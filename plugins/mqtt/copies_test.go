// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/mosquitto/proxy"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/carry"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// copyOf is what a host publishes in place of a delivery.
func copyOf(x *pluginapi.Delivery, to string, purpose pluginapi.Purpose) pluginapi.Outgoing {
	return pluginapi.Outgoing{
		Message: core.Message{Name: to, Payload: x.Message.Payload, Headers: x.Message.Headers}, Purpose: purpose, Carry: x.Carry,
	}
}

// A copy has its delivery's QoS, at least 1, and what is left of its expiry; a dead
// letter does not expire; neither is retained (D19, S-MQT-14).
func TestCopiesKeepWhatTheyStemFrom(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	d := connectAs(t, b.URL(), "svc")
	s := d.subscribe(registration(t, "in", settings.SubscribeOptions{QoS: new(2)}))
	watch := b.Subscribe(2, []string{"retry", "dead"})
	for qos := range 3 {
		b.Publish(mosquitto.Message{Topic: "in", Payload: []byte("x"), QoS: qos, Retain: true, Expiry: 600})
		x := d.one(s)
		for topic, purpose := range map[string]pluginapi.Purpose{"retry": pluginapi.PurposeRetry, "dead": pluginapi.PurposeDeadLetter} {
			d.confirmed(copyOf(&x, topic, purpose))
			got := watch.Messages(1)[0]
			expires := topic == "retry"
			if got.Topic != topic || got.QoS != max(qos, 1) || got.Retain || (got.Expiry > 0) != expires || got.Expiry > 600 {
				t.Errorf("QoS %d: %s has QoS %d, retain %t, expiry %d", qos, topic, got.QoS, got.Retain, got.Expiry)
			}
		}
	}
	if late := b.Subscribe(1, []string{"retry", "dead"}).Rest(); len(late) > 0 {
		t.Errorf("retained: %v", late)
	}
	x := pluginapi.Delivery{Message: core.Message{Payload: []byte("x")}, Carry: []byte("of another transport")}
	d.confirmed(copyOf(&x, "retry", pluginapi.PurposeRetry))
	if got := watch.Messages(1)[0]; got.QoS != 1 || got.Expiry != 0 {
		t.Errorf("a foreign delivery's copy has QoS %d, expiry %d", got.QoS, got.Expiry)
	}
}

// A copy of what has expired is not sent, is done with, and is told of. Its dead
// letter leaves.
func TestCopyOfExpired(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	d := connectAs(t, b.URL(), "svc")
	s := d.subscribe(registration(t, "in", settings.SubscribeOptions{}))
	watch := b.Subscribe(1, []string{"retry", "dead"})
	b.Publish(mosquitto.Message{Topic: "in", Payload: []byte("x"), QoS: 1, Expiry: 600})
	x := d.one(s)
	life, ok := carry.Parse(x.Carry)
	if left, expires := life.Expiry(time.Now()); !ok || !expires || left == 0 || left > 600 {
		t.Fatalf("the delivery carries %+v", life)
	}
	life.Deadline = time.Now().UnixMilli() // it is over
	x.Carry = carry.Append(nil, &life)
	d.confirmed(copyOf(&x, "retry", pluginapi.PurposeRetry), copyOf(&x, "dead", pluginapi.PurposeDeadLetter))
	servicetest.Expect(t, "messages", watch.Rest(), "dead x")
	if lines := d.log.Lines("level=WARN", "expired"); len(lines) != 1 || !strings.Contains(lines[0], "topic=retry") {
		t.Errorf("log %v", lines)
	}
}

// S-MQT-25, S-MQT-07: the copy of a delivery that comes again is not sent; that of
// one which was acked, or is gone, is the only one left, and is.
func TestCopiesOverReconnect(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*settings.Settings)
		acked  bool
		sent   bool
	}{
		"comes again": {keptSession, false, false},
		"acked":       {keptSession, true, true},
		"gone":        {func(*settings.Settings) {}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := mosquitto.Start(t, mosquitto.Config{})
			p := proxy.Start(t, b.Address())
			d := connectAs(t, p.URL(), "svc", tt.change)
			s := d.subscribe(registration(t, "in", settings.SubscribeOptions{}))
			watch := b.Subscribe(1, []string{"retry"})
			b.Publish(mosquitto.Message{Topic: "in", Payload: []byte("x"), QoS: 1})
			x := d.one(s)
			if tt.acked {
				s.Settle(d.ctx, []pluginapi.Verdict{{Handle: x.Handle, Kind: core.VerdictAck}})
				p.Await(proxy.ToServer, proxy.Puback, 1)
			}
			down := make(chan struct{}, 1)
			d.conn.(pluginapi.LinkReporter).ReportLink(func(l pluginapi.LinkState) {
				if !l.Up {
					down <- struct{}{}
				}
			})
			p.Refuse()
			p.Cut()
			<-down // what is written before may have arrived
			waiting := make(chan pluginapi.Receipt, 1)
			d.conn.Publish(d.ctx, []pluginapi.Outgoing{copyOf(&x, "retry", pluginapi.PurposeRetry)}, func(_ int, r pluginapi.Receipt) { waiting <- r })
			p.Resume()
			later := func() pluginapi.Receipt { return d.publish(copyOf(&x, "retry", pluginapi.PurposeRetry))[0] }
			for i, r := range []pluginapi.Receipt{<-waiting, later()} {
				if confirmed := r.Status == pluginapi.ReceiptConfirmed; confirmed != tt.sent || !confirmed && !r.Fault.Transient {
					t.Errorf("copy %d: %d %v", i, r.Status, r.Fault)
				}
			}
			want := []string{"retry x", "retry x"}
			if !tt.sent {
				want = nil
			}
			servicetest.Expect(t, "copies", watch.Rest(), want...)
		})
	}
}

// Copies leave over the connection that their delivery came on: what becomes of
// the one is known where the other is.
func TestCopiesOfOwnConnection(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	d := connectAs(t, b.URL(), "svc")
	s := d.subscribe(registration(t, "in", settings.SubscribeOptions{Connection: "own"}))
	b.Publish(mosquitto.Message{Topic: "in", Payload: []byte("x"), QoS: 1})
	x := d.one(s)
	d.confirmed(copyOf(&x, "retry", pluginapi.PurposeRetry), servicetest.Message("other", "y"), copyOf(&x, "retry", pluginapi.PurposeRetry))
	if n := len(b.Await(2, "Received PUBLISH from svc-own")); n != 2 {
		t.Errorf("%d copies over the delivery's own connection", n)
	}
	if n := len(b.Await(1, "Received PUBLISH from svc ")); n != 1 {
		t.Errorf("%d messages over the endpoint's", n)
	}
}
