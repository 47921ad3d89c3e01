// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/mosquitto/proxy"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// What will not change ends Connect at once, with its reason in words, and nothing
// more is tried.
func TestRefusedForGood_M_05(t *testing.T) {
	t.Parallel()
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
			d, err := try(t, set, pluginapi.Usage{}) // with the first answer: else its limit would be the reason
			f := fault(t, err)
			if f.Code != core.FaultDenied || f.Transient || len(f.Diagnostics) == 0 {
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
	t.Parallel()
	ctx, end := overdue(t)
	d, e := unopened(t, at("mqtt://127.0.0.1:1", "shop"), pluginapi.Usage{})
	failed := make(chan error, 1)
	go func() {
		_, err := e.Connect(ctx, nil)
		failed <- err
	}()
	eventually(t, "an attempt has failed", func() bool { return len(d.log.Lines("connection not made")) > 0 })
	end()
	err := <-failed
	if f := fault(t, err); !f.Transient || !strings.Contains(f.Message, "127.0.0.1:1") || !strings.Contains(f.Message, "refused") {
		t.Errorf("%+v", err)
	}
}

// A second client under the same id ends the first for good: subscriptions with
// the reason, publishes refused, and nothing is connected again.
func TestTakenOver(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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

// Options that do not fit are refused where nothing was inspected, too.
func TestSubscribeRefuses(t *testing.T) {
	t.Parallel()
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

// The files of TLS are read when the endpoint connects, and what is wrong with them
// is said by field. Without a CA file the system's authorities count (D29).
func TestConnectTLS_S_MQT_33(t *testing.T) {
	t.Parallel()
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
		_, err := try(t, set, pluginapi.Usage{})
		f, ok := errors.AsType[*core.Fault](err)
		if !ok || f.Code != tt.code || f.Transient || len(f.Diagnostics) == 0 || f.Diagnostics[0].Path != tt.path {
			t.Errorf("%s: %+v", name, err)
		}
	}
}
