// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/mosquitto/proxy"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/internal/transportpb"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// Subscriptions of one filter are one at the server, and take turns; each ack is
// a PUBACK.
func TestSameFilter_S_MQT_28(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	u := topics(t, "jobs", "jobs")
	d := opened(t, at(b.URL(), "shop"), u)
	first, second := d.subscribe(u.Registrations[0]), d.subscribe(u.Registrations[1])
	b.PublishAll(mosquitto.Message{Topic: "jobs", QoS: 1}, "1", "2", "3", "4")
	one, _ := d.receive(first, 2)
	other, _ := d.receive(second, 2)
	got := append(texts(one), texts(other)...)
	slices.Sort(got)
	if !slices.Equal(got, []string{"1", "2", "3", "4"}) {
		t.Errorf("got %v and %v", texts(one), texts(other))
	}
	d.ack(first, one...)
	d.ack(second, other...)
	b.Await(4, "Received PUBACK from shop")
	if n := len(b.Lines("Received SUBSCRIBE from shop")); n != 1 {
		t.Errorf("subscribed %d times", n)
	}
	// One of two goes on alone.
	if err := second.Close(d.ctx); err != nil {
		t.Error(err)
	}
	b.PublishAll(mosquitto.Message{Topic: "jobs", QoS: 1}, "5", "6")
	more, _ := d.receive(first, 2)
	if !slices.Equal(texts(more), []string{"5", "6"}) {
		t.Error(texts(more))
	}
	if n := len(b.Lines("Received UNSUBSCRIBE from shop")); n != 0 {
		t.Errorf("unsubscribed %d times", n)
	}
}

// A subscription with a connection of its own has a receive maximum of its own.
func TestOwnConnection(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	set := at(b.URL(), "shop")
	set.ReceiveMaximum = 1
	u := usage(registration(t, "slow", settings.SubscribeOptions{}), registration(t, "quick", settings.SubscribeOptions{Connection: "own"}))
	d := opened(t, set, u)
	slow, quick := d.subscribe(u.Registrations[0]), d.subscribe(u.Registrations[1])
	b.PublishAll(mosquitto.Message{Topic: "slow", QoS: 1}, "1", "2")
	held, _ := d.receive(slow, 1)
	b.PublishAll(mosquitto.Message{Topic: "quick", QoS: 1}, "a", "b")
	for _, want := range []string{"a", "b"} {
		ds, _ := d.receive(quick, 1)
		if texts(ds)[0] != want {
			t.Errorf("got %s", texts(ds))
		}
		d.ack(quick, ds...)
	}
	b.Await(2, "Received PUBACK from shop-own")
	if n := len(b.Lines("Sending PUBLISH to shop (")); n != 1 {
		t.Errorf("%d messages beyond the receive maximum", n-1)
	}
	d.ack(slow, held...)
	d.receive(slow, 1)
	// One that was not inspected opens its connection when it is subscribed to.
	late := d.subscribe(registration(t, "late", settings.SubscribeOptions{Connection: "later"}))
	b.PublishAll(mosquitto.Message{Topic: "late", QoS: 1}, "x")
	d.receive(late, 1)
	b.Await(1, "New client connected", "as shop-later")
}

// The link is down while any of the connections is, with a reason; what was in hand
// is void before it is up again.
func TestLinkStates(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	p := proxy.Start(t, b.Address())
	u := usage(registration(t, "a", settings.SubscribeOptions{}), registration(t, "b", settings.SubscribeOptions{Connection: "own"}))
	d := opened(t, kept(at(p.URL(), "shop")), u)
	a := d.subscribe(u.Registrations[0])
	d.subscribe(u.Registrations[1])
	s := d.states()
	if got := s.all(); len(got) != 1 || !got[0].Up {
		t.Fatalf("%+v", got)
	}
	b.PublishAll(mosquitto.Message{Topic: "a", QoS: 1}, "1")
	first, _ := d.receive(a, 1)
	p.Refuse()
	p.Cut()
	eventually(t, "down", func() bool { return !s.last().Up })
	if l := s.last(); l.Reason == "" || strings.ContainsAny(l.Reason, "\n") {
		t.Errorf("%+v", l)
	}
	p.Resume()
	again, voids := d.receive(a, 1)
	if len(voids) != 1 || !voids[0].Returns || voids[0].Handles[0] != first[0].Handle {
		t.Errorf("voids %+v", voids)
	}
	if v, ok := again[0].Message.Headers.Get("mqtt-redelivered"); !ok || string(v) != "true" {
		t.Errorf("headers %v", again[0].Message.Headers)
	}
	if r := a.Settle(d.ctx, []pluginapi.Verdict{{Handle: first[0].Handle, Kind: core.VerdictAck}}); r[0].Status != pluginapi.ResultStale {
		t.Errorf("a late ack: %+v", r)
	}
	d.ack(a, again...)
	eventually(t, "up", func() bool { return s.last().Up })
	b.Await(1, "Received PUBACK from shop")
	d.close()
	if l := s.last(); !l.Up {
		t.Errorf("an orderly end is told as %+v", l)
	}
}

// All that was subscribed to is subscribed to again after each loss of the
// session, which the log tells.
func TestResubscribes_M_04(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	u := usage(registration(t, "a/+", settings.SubscribeOptions{Filter: true}), registration(t, "b", settings.SubscribeOptions{}))
	d := opened(t, at(b.URL(), "shop"), u)
	subs := []pluginapi.Subscription{d.subscribe(u.Registrations[0]), d.subscribe(u.Registrations[1])}
	for round := 1; round <= 3; round++ {
		b.Stop()
		b.Start()
		b.Await(2, "Sending SUBACK to shop")
		for i, topic := range []string{"a/x", "b"} {
			var want []string
			for k := range 10 {
				want = append(want, fmt.Sprint(round, topic, k))
			}
			b.PublishAll(mosquitto.Message{Topic: topic, QoS: 1}, want...)
			got, _ := d.receive(subs[i], 10)
			if !slices.Equal(texts(got), want) {
				t.Errorf("got %v", texts(got))
			}
			d.ack(subs[i], got...)
		}
		if n := len(d.log.Lines("session lost")); n != round {
			t.Errorf("%d of %d losses are told\n%s", n, round, d.log)
		}
	}
}

// A server that cuts the session's life short narrows what comes again.
func TestSessionNotKept_S_MQT_37(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	short := embedWith(t, func(p *packets.Properties) { p.SessionExpiryInterval, p.SessionExpiryIntervalFlag = 0, true })
	u := topics(t, "a")
	reconnects := at(b.URL(), "shop")
	reconnects.SessionExpiry = core.Duration(time.Hour)
	for _, tt := range []struct {
		set  settings.Settings
		want core.Unsettled
		text string
		told int
	}{
		{at(b.URL(), "shop"), core.UnsettledLost, "the session is not kept: ", 1},
		{reconnects, core.UnsettledLost, "the session is not kept over restarts: ", 1},
		{kept(at(b.URL(), "shop")), core.UnsettledOnResume, "the session is not kept", 0},
		{kept(at("mqtt://"+short.address, "shop")), core.UnsettledLost, "the server does not keep the session", 1},
	} {
		d := opened(t, tt.set, u)
		if got := d.subscribe(u.Registrations[0]).Profiles()[0].Unsettled; got != tt.want {
			t.Errorf("unsettled %v, want %v", got, tt.want)
		}
		if n := len(d.log.Lines(tt.text, "fix=")); n != tt.told {
			t.Errorf("told %d times\n%s", n, d.log)
		}
		d.close()
	}
}

// A subscription that ends is taken back where the session is not kept, and goes on
// at the server where it is; both can be opened again.
func TestReopen(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	for client, keeps := range map[string]bool{"lost": false, "held": true} {
		set := at(b.URL(), client)
		if keeps {
			set = kept(set)
		}
		u := topics(t, "a")
		d := opened(t, set, u)
		for round := range 3 {
			s := d.subscribe(u.Registrations[0])
			b.PublishAll(mosquitto.Message{Topic: "a", QoS: 1}, fmt.Sprint(round))
			ds, _ := d.receive(s, 1)
			if texts(ds)[0] != fmt.Sprint(round) {
				t.Errorf("%s: got %v in round %d", client, texts(ds), round)
			}
			d.ack(s, ds...)
			s.(pluginapi.IntakeStopper).StopIntake()
			if err := s.Close(d.ctx); err != nil {
				t.Error(err)
			}
		}
		subscribed := map[bool]int{false: 3, true: 1}[keeps]
		b.Await(subscribed, "Received SUBSCRIBE from "+client)
		if n := len(b.Lines("Received SUBSCRIBE from " + client)); n != subscribed {
			t.Errorf("%s: subscribed %d times, want %d", client, n, subscribed)
		}
		if n := len(b.Lines("Received UNSUBSCRIBE from " + client)); n != 0 && keeps || n == 0 && !keeps {
			t.Errorf("%s: unsubscribed %d times", client, n)
		}
		d.close()
	}
}

// Who stops waiting for the server's answer is told so, and may ask again.
func TestSubscribeCanceled(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{Quiet: true})
	p := proxy.Start(t, b.Address())
	u := topics(t, "a")
	d := opened(t, at(p.URL(), "shop"), u)
	p.Stall(proxy.ToClient)
	ctx, cancel := context.WithTimeout(d.ctx, 100*time.Millisecond)
	defer cancel()
	_, err := d.conn.Subscribe(ctx, u.Registrations[0])
	if f, ok := errors.AsType[*core.Fault](err); !ok || f.Code != core.FaultTimeout || !f.Transient {
		t.Errorf("%+v", err)
	}
	p.Resume()
	s := d.subscribe(u.Registrations[0])
	b.PublishAll(mosquitto.Message{Topic: "a", QoS: 1}, "1")
	d.receive(s, 1)
}

// Close returns within its context whatever the server does, and says that it did
// not wait for everything.
func TestCloseWithin(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{Quiet: true})
	p := proxy.Start(t, b.Address())
	e := servicetest.Configure(t, mqtt.New(), at(p.URL(), "shop"), nil, nil)
	c, err := e.Connect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Stall(proxy.ToClient, proxy.ToServer)
	receipts := make(chan pluginapi.Receipt, 1)
	c.Publish(t.Context(), []pluginapi.Outgoing{servicetest.Message("a", "1")}, func(_ int, r pluginapi.Receipt) { receipts <- r })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err = c.Close(ctx)
	// The server does nothing, for ever: what does not look at the context ends by the
	// keep alive, after a minute and more.
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > time.Minute {
		t.Errorf("close after %v: %v", time.Since(begun), err)
	}
	if r := <-receipts; r.Status != pluginapi.ReceiptUnknown {
		t.Errorf("%+v", r)
	}
	if _, err := c.Close(ctx); err != nil {
		t.Errorf("again: %v", err)
	}
}

// The will is the server's word for a client that is gone: published when its host
// is, or the connection, and not when the endpoint is closed.
func TestWill(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	s := b.Subscribe(1, []string{"gone/#"})
	p := proxy.Start(t, b.Address())
	set := func(client string) settings.Settings {
		s := at(p.URL(), client)
		s.Will = &settings.Will{Topic: "gone/" + client, Payload: "bye", ContentType: "text/plain"}
		return s
	}
	opened(t, set("closed"), pluginapi.Usage{}).close()
	b.Await(1, "Received DISCONNECT from closed")
	cut := opened(t, set("cut"), pluginapi.Usage{})
	link := cut.states()
	p.Cut()
	eventually(t, "down and up", func() bool { return len(link.all()) == 3 })
	cut.close()
	abandoned(t, set("left"))
	got := s.Got(2)
	got = append(got, s.Rest()...)
	slices.Sort(got)
	if want := []string{"gone/cut bye content-type=text/plain", "gone/left bye content-type=text/plain"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// abandoned connects an endpoint whose host is gone then.
func abandoned(t *testing.T, set settings.Settings) {
	t.Helper()
	raw, err := pluginapi.EncodeSettings(set)
	if err != nil {
		t.Fatal(err)
	}
	i := pluginapi.NewInstance(mqtt.New(), nil, nil)
	l := link.Local(i.Server())
	if _, err := l.Configure(t.Context(), &transportpb.ConfigureRequest{Settings: raw, Endpoint: "in", Generation: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Connect(t.Context(), &transportpb.ConnectRequest{}); err != nil {
		t.Fatal(err)
	}
	l.Break(errors.New("the host is gone"))
	i.Abandon(t.Context())
	if err := l.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}
