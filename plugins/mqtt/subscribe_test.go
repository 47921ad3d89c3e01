// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/mosquitto/proxy"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// until receives and acks until the payload last comes, and returns each payload,
// marked where the server kept it.
func (d *direct) until(s pluginapi.Subscription, last string) []string {
	d.t.Helper()
	var got []string
	for len(got) == 0 || got[len(got)-1] != last {
		ds, _ := d.receive(s, 1)
		d.ack(s, ds...)
		text := texts(ds)[0]
		if mark, ok := ds[0].Message.Headers.Get("mqtt-retained"); ok {
			text += ", retained " + string(mark)
		}
		got = append(got, text)
	}
	return got
}

// Messages that the server has retained come at each start, where the session
// lacks the subscription, or never.
func TestRetainHandling(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	b.Publish(mosquitto.Message{Topic: "r", Payload: []byte("old"), QoS: 1, Retain: true})
	for handling, want := range map[string][]string{
		settings.RetainHandlingAlways: {"old, retained true", "live 1", "old, retained true", "live 2"},
		settings.RetainHandlingNew:    {"old, retained true", "live 1", "live 2"},
		settings.RetainHandlingNever:  {"live 1", "live 2"},
	} {
		t.Run(handling, func(t *testing.T) {
			var got []string
			for life := 1; life <= 2; life++ {
				u := usage(registration(t, "r", settings.SubscribeOptions{RetainHandling: handling}))
				d := opened(t, kept(at(b.URL(), handling)), u)
				s := d.subscribe(u.Registrations[0])
				last := fmt.Sprint("live ", life)
				b.Publish(mosquitto.Message{Topic: "r", Payload: []byte(last), QoS: 1})
				got = append(got, d.until(s, last)...)
				d.close()
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// What is published to be retained is marked so only for who asks for it.
func TestRetainAsPublished(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	for asked, want := range map[bool]string{false: "kept", true: "kept, retained true"} {
		u := usage(registration(t, "r", settings.SubscribeOptions{RetainAsPublished: asked, RetainHandling: settings.RetainHandlingNever}))
		d := opened(t, at(b.URL(), fmt.Sprint("as-published-", asked)), u)
		s := d.subscribe(u.Registrations[0])
		b.Publish(mosquitto.Message{Topic: "r", Payload: []byte("kept"), QoS: 1, Retain: true})
		b.Publish(mosquitto.Message{Topic: "r", Payload: []byte("last"), QoS: 1})
		if got := d.until(s, "last"); !slices.Equal(got, []string{want, "last"}) {
			t.Errorf("asked %v: got %q, want %q", asked, got, want)
		}
	}
}

// no_local leaves out what the connection itself has published, and nothing else.
func TestNoLocal(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	for quiet, want := range map[bool][]string{false: {"own", "foreign"}, true: {"foreign"}} {
		u := usage(registration(t, "n", settings.SubscribeOptions{NoLocal: quiet}))
		d := opened(t, at(b.URL(), fmt.Sprint("no-local-", quiet)), u)
		s := d.subscribe(u.Registrations[0])
		d.confirmed(servicetest.Message("n", "own"))
		b.Publish(mosquitto.Message{Topic: "n", Payload: []byte("foreign"), QoS: 1})
		if got := d.until(s, "foreign"); !slices.Equal(got, want) {
			t.Errorf("no_local %v: got %q, want %q", quiet, got, want)
		}
	}
}

// Nothing that handlers do, or do not, stops the connection: while nobody receives
// pings are answered, publishes are confirmed, and of QoS 0 what does not fit is
// dropped and told.
func TestNobodyReceives(t *testing.T) {
	t.Parallel()
	const n, queue = 5000, 100
	b := mosquitto.Start(t, mosquitto.Config{Quiet: true})
	p := proxy.Start(t, b.Address())
	set := at(p.URL(), "shop")
	set.KeepAlive, set.QoS0Queue, set.ReceiveMaximum = new(core.Duration(6*time.Second)), queue, 10
	u := usage(registration(t, "flood", settings.SubscribeOptions{QoS: new(0)}), registration(t, "jobs", settings.SubscribeOptions{}))
	d := opened(t, set, u)
	flood, jobs := d.subscribe(u.Registrations[0]), d.subscribe(u.Registrations[1])
	var payloads []string
	for i := range n {
		payloads = append(payloads, fmt.Sprint(i))
	}
	b.PublishAll(mosquitto.Message{Topic: "jobs", QoS: 1}, payloads[:50]...)
	b.PublishAll(mosquitto.Message{Topic: "flood"}, payloads...)
	d.confirmed(servicetest.Message("elsewhere", "x"))
	p.Await(proxy.ToClient, proxy.Pingresp, p.Count(proxy.ToClient, proxy.Pingresp)+1)
	d.confirmed(servicetest.Message("elsewhere", "y"))
	if p.Accepted() != 1 {
		t.Errorf("%d connections\n%s", p.Accepted(), d.log)
	}
	if lines := d.log.Lines("level=WARN", "qos0_queue", "topic=flood"); len(lines) == 0 {
		t.Errorf("nothing is told\n%s", d.log)
	}
	got, _ := d.receive(flood, queue)
	if !slices.Equal(texts(got), payloads[:queue]) {
		t.Errorf("of QoS 0 %q have waited", texts(got))
	}
	held, _ := d.receive(jobs, 10)
	d.ack(jobs, held...)
	rest, _ := d.receive(jobs, 40)
	if all := append(texts(held), texts(rest)...); !slices.Equal(all, payloads[:50]) {
		t.Errorf("of QoS 1 there are %q", all)
	}
	d.close()
	if lines := d.log.Lines("level=WARN", "messages were lost", fmt.Sprint("dropped=", n-queue)); len(lines) != 1 {
		t.Errorf("the total is not told\n%s", d.log)
	}
}

// User and password may stand in the URL, percent-encoded, or beside it.
func TestUsers(t *testing.T) {
	t.Parallel()
	const user, password = "ann@port", "p@ss/ %1:"
	b := mosquitto.Start(t, mosquitto.Config{Users: map[string]string{user: password}})
	encoded := settings.URL(strings.Replace(b.URL(), "mqtt://", "mqtt://ann%40port:p%40ss%2F%20%251%3A@", 1))
	inURL, beside := settings.Settings{URL: encoded, ClientID: "shop-1"}, at(b.URL(), "shop-2")
	beside.Username, beside.Password = user, core.NewSecret(password)
	for _, set := range []settings.Settings{inURL, beside} {
		d := opened(t, set, pluginapi.Usage{})
		d.confirmed(servicetest.Message("t", "x"))
		d.close()
		if text := d.log.String(); strings.Contains(text, "p@ss") || strings.Contains(text, "p%40ss") {
			t.Errorf("the password is shown:\n%s", text)
		}
	}
}
