// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
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

// try connects an endpoint that is used so, within a limit.
func try(t testing.TB, set settings.Settings, u pluginapi.Usage, limit time.Duration) (*direct, error) {
	t.Helper()
	d := &direct{t: t, log: &servicetest.Log{}}
	e := servicetest.Configure(t, mqtt.New(), set, nil, d.log)
	e.Inspect(u)
	within, cancel := context.WithTimeout(context.Background(), limit)
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
	d, err := try(t, set, u, servicetest.Limit)
	if err != nil {
		t.Fatal(err)
	}
	return d
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
			x.Message = x.Message.Clone()
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

// texts are the payloads of deliveries.
func texts(ds []pluginapi.Delivery) []string {
	var out []string
	for _, d := range ds {
		out = append(out, string(d.Message.Payload))
	}
	return out
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

// Subscriptions of one filter are one at the server, and take turns; each ack is
// a PUBACK.
func TestSameFilter_S_MQT_28(t *testing.T) {
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

// What will not change ends Connect at once, with its reason in words, and nothing
// more is tried.
func TestRefusedForGood_M_05(t *testing.T) {
	for _, tt := range []struct {
		name   string
		broker mosquitto.Config
		words  string
	}{
		{"a wrong password", mosquitto.Config{Users: map[string]string{"ann": "secret"}}, "not authorized (0x87)"},
		{"a client id that is banned", mosquitto.Config{Users: map[string]string{"ann": "hunter2"}, Lines: []string{"clientid_prefixes kit"}}, "not authorized (0x87)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := proxy.Start(t, mosquitto.Start(t, tt.broker).Address())
			set := at(p.URL(), "shop")
			set.Username, set.Password = "ann", core.NewSecret("hunter2")
			begun := time.Now()
			d, err := try(t, set, pluginapi.Usage{}, 5*time.Second)
			f := fault(t, err)
			if f.Code != core.FaultDenied || f.Transient || time.Since(begun) > 4*time.Second || len(f.Diagnostics) == 0 {
				t.Fatalf("%+v", err)
			}
			for _, w := range []string{"endpoint in", `"shop"`, p.Address(), tt.words} {
				if !strings.Contains(f.Message, w) {
					t.Errorf("%q lacks %q", f.Message, w)
				}
			}
			if strings.Contains(fmt.Sprintf("%+v %v %s", f, f.Diagnostics, d.log), "hunter2") {
				t.Errorf("the password is shown: %+v\n%s", f, d.log)
			}
			if n := p.Accepted(); n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// A server that is not there is tried again until there is no time left, and then
// that is the reason.
func TestUnreachable_M_05(t *testing.T) {
	_, err := try(t, at("mqtt://127.0.0.1:1", "shop"), pluginapi.Usage{}, 300*time.Millisecond)
	if f := fault(t, err); !f.Transient || !strings.Contains(f.Message, "127.0.0.1:1") || !strings.Contains(f.Message, "refused") {
		t.Errorf("%+v", err)
	}
}

// A second client under the same id ends the first for good: subscriptions with
// the reason, publishes refused, and nothing is connected again.
func TestTakenOver(t *testing.T) {
	url := polite(t)
	u := topics(t, "a", "b")
	d := opened(t, at(url, "shop"), u)
	first, second := d.subscribe(u.Registrations[0]), d.subscribe(u.Registrations[1])
	s := d.states()
	p := proxy.Start(t, strings.TrimPrefix(url, "mqtt://"))
	opened(t, at(p.URL(), "shop"), pluginapi.Usage{})
	for _, sub := range []pluginapi.Subscription{first, second} {
		_, err := sub.Receive(d.ctx, servicetest.Plenty)
		f, ok := errors.AsType[*core.Fault](err)
		if !ok || f.Code != core.FaultConflict || f.Transient || !strings.Contains(f.Message, `"shop"`) || !strings.Contains(f.Message, "0x8E") {
			t.Errorf("%+v", err)
		}
	}
	r := d.publish(servicetest.Message("x", "1"))[0]
	if r.Status != pluginapi.ReceiptRefused || r.Fault.Transient || r.Fault.Code != core.FaultConflict {
		t.Errorf("%+v %v", r, r.Fault)
	}
	if _, err := d.conn.Subscribe(d.ctx, registration(t, "c", settings.SubscribeOptions{})); err == nil {
		t.Error("subscribed")
	}
	if l := s.last(); l.Up || !strings.Contains(l.Reason, "taken over") {
		t.Errorf("%+v", l)
	}
	if p.Accepted() != 1 || p.Open() != 1 {
		t.Errorf("%d connections were made, %d are open", p.Accepted(), p.Open())
	}
}

// gate lets everybody in, and keeps closed/ shut.
type gate struct{ mochi.HookBase }

func (*gate) Provides(what byte) bool {
	return what == mochi.OnConnectAuthenticate || what == mochi.OnACLCheck
}

func (*gate) OnConnectAuthenticate(*mochi.Client, packets.Packet) bool { return true }

func (*gate) OnACLCheck(_ *mochi.Client, topic string, _ bool) bool {
	return !strings.HasPrefix(topic, "closed/")
}

// polite starts a server that tells whom it disconnects and what it refuses, which
// Mosquitto 2.0 does not, and returns its URL.
func polite(t *testing.T) string {
	t.Helper()
	s := mochi.New(&mochi.Options{Logger: slog.New(slog.DiscardHandler)})
	l := listeners.NewTCP(listeners.Config{ID: "t", Address: "127.0.0.1:0"})
	if err := errors.Join(s.AddHook(new(gate), nil), s.AddListener(l), s.Serve()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return "mqtt://" + l.Address()
}

// A filter that the server refuses is named with its reason, and the others live.
// The access list of Mosquitto 2.0 is not about filters.
func TestFilterRefused_M_06(t *testing.T) {
	u := usage(registration(t, "open/a", settings.SubscribeOptions{}), registration(t, "closed/#", settings.SubscribeOptions{Filter: true}))
	d := opened(t, at(polite(t), "shop"), u)
	a := d.subscribe(u.Registrations[0])
	_, err := d.conn.Subscribe(d.ctx, u.Registrations[1])
	f, ok := errors.AsType[*core.Fault](err)
	if !ok || f.Code != core.FaultDenied || f.Transient || !strings.Contains(f.Message, `"closed/#"`) || !strings.Contains(f.Message, "not authorized (0x87)") {
		t.Errorf("%+v", err)
	}
	d.confirmed(servicetest.Message("open/a", "1"))
	d.receive(a, 1)
}

// What is granted less is warned of, and its profiles are narrower.
func TestGrantedLess_M_06(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{Lines: []string{"max_qos 0"}})
	u := topics(t, "a")
	d := opened(t, kept(at(b.URL(), "shop")), u)
	s := d.subscribe(u.Registrations[0])
	if got := s.Profiles(); len(got) != 1 || got[0].Ack != core.AckNone || got[0].Address != "a" {
		t.Errorf("profiles %v", got)
	}
	if n := len(d.log.Lines("level=WARN", "granted=0", "asked=1", "filter=a")); n != 1 {
		t.Errorf("log %s", d.log)
	}
	b.PublishAll(mosquitto.Message{Topic: "a", QoS: 0}, "1")
	if ds, _ := d.receive(s, 1); ds[0].Profile != 0 {
		t.Errorf("profile %d", ds[0].Profile)
	}
}

// A server that cuts the session's life short narrows what comes again.
func TestSessionNotKept_S_MQT_37(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{})
	u := topics(t, "a")
	for _, tt := range []struct {
		set  settings.Settings
		want core.Unsettled
		told int
	}{{at(b.URL(), "shop"), core.UnsettledLost, 1}, {kept(at(b.URL(), "shop")), core.UnsettledOnResume, 0}} {
		d := opened(t, tt.set, u)
		if got := d.subscribe(u.Registrations[0]).Profiles()[0].Unsettled; got != tt.want {
			t.Errorf("unsettled %v, want %v", got, tt.want)
		}
		if n := len(d.log.Lines("level=INFO", "the session is not kept")); n != tt.told {
			t.Errorf("told %d times\n%s", n, d.log)
		}
		d.close()
	}
}

// A subscription that ends is taken back where the session is not kept, and goes on
// at the server where it is; both can be opened again.
func TestReopen(t *testing.T) {
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

// Options that do not fit are refused where nothing was inspected, too.
func TestSubscribeRefuses(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{Quiet: true})
	d := opened(t, at(b.URL(), "shop"), pluginapi.Usage{})
	d.subscribe(registration(t, "a", settings.SubscribeOptions{}))
	for _, r := range []pluginapi.Registration{
		registration(t, "a/+", settings.SubscribeOptions{}), registration(t, "a", settings.SubscribeOptions{QoS: new(2)}),
		registration(t, "b", settings.SubscribeOptions{Group: "g/h"}),
	} {
		_, err := d.conn.Subscribe(d.ctx, r)
		if f, ok := errors.AsType[*core.Fault](err); !ok || f.Code != core.FaultInvalid || f.Transient || f.Diagnostics[0].Fix == "" {
			t.Errorf("%s: %+v", r.Name, err)
		}
	}
	d.close()
	_, err := d.conn.Subscribe(context.Background(), registration(t, "c", settings.SubscribeOptions{}))
	if f, ok := errors.AsType[*core.Fault](err); !ok || f.Code != core.FaultClosed {
		t.Errorf("behind Close: %+v", err)
	}
}

// Who stops waiting for the server's answer is told so, and may ask again.
func TestSubscribeCanceled(t *testing.T) {
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
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 2*time.Second {
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

// The files of TLS are read when the endpoint connects, and what is wrong with them
// is said by field. Without a CA file the system's authorities count (D29).
func TestConnectTLS_S_MQT_33(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{TLS: true, ClientCertificates: true})
	cert, key := b.Certificate()
	good := at(b.URL(), "shop")
	good.TLSCA, good.TLSCert, good.TLSKey = b.CA(), cert, key
	d := opened(t, good, topics(t, "a"))
	s := d.subscribe(registration(t, "a", settings.SubscribeOptions{}))
	d.confirmed(servicetest.Message("a", "1"))
	d.receive(s, 1)
	for name, tt := range map[string]struct {
		change func(*settings.Settings)
		code   core.FaultCode
		path   string
	}{
		"no such file":       {func(s *settings.Settings) { s.TLSCA = "/nowhere/ca.pem" }, core.FaultInvalid, "tls_ca"},
		"no certificate":     {func(s *settings.Settings) { s.TLSCA = key }, core.FaultInvalid, "tls_ca"},
		"no key":             {func(s *settings.Settings) { s.TLSKey = b.CA() }, core.FaultInvalid, "tls_cert"},
		"unknown to systems": {func(s *settings.Settings) { s.TLSCA = "" }, core.FaultDenied, "tls_ca"},
		"another name":       {func(s *settings.Settings) { s.TLSServerName = "example.com" }, core.FaultDenied, "tls_server_name"},
	} {
		set := good
		tt.change(&set)
		_, err := try(t, set, pluginapi.Usage{}, 5*time.Second)
		f, ok := errors.AsType[*core.Fault](err)
		if !ok || f.Code != tt.code || f.Transient || len(f.Diagnostics) == 0 || f.Diagnostics[0].Path != tt.path {
			t.Errorf("%s: %+v", name, err)
		}
	}
}
