// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/mosquitto/proxy"
	mqtt "github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// mqttWorkload is a workload whose messages come from a broker behind a proxy.
type mqttWorkload struct {
	*workload
	broker *mosquitto.Broker
	proxy  *proxy.Proxy
	qos    int
	fed    int
}

// newMQTTWorkload makes a service that reads orders, three attempts each. What a
// test sets of its users and rights is in c, and in set.
func newMQTTWorkload(t *testing.T, qos int, c mosquitto.Config, set func(*mqtt.Settings)) *mqttWorkload {
	t.Helper()
	w := &mqttWorkload{workload: &workload{caps: settings.KindM()}, broker: mosquitto.Start(t, c), qos: qos}
	w.proxy = proxy.Start(t, w.broker.Address())
	w.service = newService(t)
	s := keptAt(w.proxy.URL())
	if set != nil {
		set(&s)
	}
	in := w.mqtt("in", s)
	host.Handle(in.Subscription("orders", quality(qos)), w.handle, host.MaxAttempts(3), host.DeadLetterTo(in.To("graves")))
	return w
}

// feed publishes 400 messages, whatever is between the service and the broker.
func (w *mqttWorkload) feed() {
	w.t.Helper()
	var payloads []string
	for range 400 {
		payloads = append(payloads, fmt.Sprintf("%06d", w.fed))
		w.fed++
	}
	w.broker.PublishAll(mosquitto.Message{Topic: "orders", QoS: w.qos}, payloads...)
}

// down waits until the endpoint is down, and checks what is told of it.
func (w *mqttWorkload) down() {
	w.t.Helper()
	began := time.Now()
	var e host.EndpointHealth
	eventually(w.t, "it is told that the connection is lost", func() bool {
		e = w.endpoint()
		return e.State == host.EndpointDisconnected
	})
	s := e.Subscriptions[0]
	if e.Since.Before(began.Add(-late)) || e.Reason == "" || s.State != host.SubscriptionDown || s.Reason == "" || w.Ready() {
		w.t.Errorf("without a connection it is %+v", e)
	}
}

// up waits until it is up again.
func (w *mqttWorkload) up() {
	w.t.Helper()
	eventually(w.t, "it is told that the connection is back", w.Ready)
	if e := w.endpoint(); e.State != host.EndpointUp || e.Reason != "" {
		w.t.Errorf("with the connection again it is %+v", e)
	}
}

// E-14: the network is cut under load, and comes back; then the broker hangs, and
// goes on. Both are told, with a reason, and so is the return. The counters add up at every sample. At QoS 2 they are in the
// end what they would be without any of it.
func TestE14CountersOverMQTT(t *testing.T) {
	t.Parallel()
	const (
		away    = 8 * time.Second // the pauses between attempts have grown to their longest by then, 5 s
		silence = 4 * time.Second // before a ping, which has 5 s to be answered
	)
	for _, qos := range []int{1, 2} {
		t.Run(fmt.Sprint("QoS ", qos), func(t *testing.T) {
			t.Parallel()
			w := newMQTTWorkload(t, qos, mosquitto.Config{Quiet: true}, func(s *mqtt.Settings) { s.KeepAlive = new(core.Duration(silence)) })
			graves := w.broker.Subscribe(qos, []string{"graves"})
			w.serve()
			over := make(chan struct{})
			var aside sync.WaitGroup
			aside.Go(func() { w.sample(over) })
			w.feed()
			w.proxy.Refuse()
			w.proxy.Cut()
			cut := time.Now()
			w.down()
			w.feed()
			eventually(t, "it was away for long", func() bool { return time.Since(cut) > away })
			if e := w.endpoint(); e.State != host.EndpointDisconnected {
				t.Errorf("after %v it is %+v", away, e)
			}
			w.proxy.Resume()
			w.up()
			w.feed()
			w.proxy.Stall()
			w.down()
			w.proxy.Resume()
			w.up()
			w.feed()
			n := uint64(w.fed)
			eventually(t, "all is handled", func() bool {
				c := w.counters()
				return c.InWork == 0 && c.Acked >= n*7/10 && c.Dropped >= n/10 && c.DeadLettered >= n/5
			})
			close(over)
			aside.Wait()
			c := w.counters()
			t.Logf("%+v", c)
			if c.Lost != 0 {
				t.Errorf("%d are said to be lost", c.Lost)
			}
			if qos == 2 && (c.Acked != n*7/10 || c.Dropped != n/10 || c.DeadLettered != n/5 || c.Retried != n*4/10) {
				t.Errorf("of %d messages: %+v", n, c)
			}
			w.stops()
			if dead := len(graves.Rest()); dead < w.fed/5 || qos == 2 && dead != w.fed/5 {
				t.Errorf("%d dead letters", dead)
			}
		})
	}
}

// E-14: a user who is not known any more is refused when he comes again: that
// ends the service, which says for what.
func TestE14UserIsTakenAwayOverMQTT(t *testing.T) {
	t.Parallel()
	users := map[string]string{"ann": "secret"}
	w := newMQTTWorkload(t, 1, mosquitto.Config{Users: users}, func(s *mqtt.Settings) {
		s.Username, s.Password = "ann", core.NewSecret("secret")
	})
	w.serve()
	w.feed()
	w.broker.Reload(mosquitto.Config{Users: map[string]string{"bob": "secret"}})
	err := w.ends()
	var lost *host.EndpointError
	if !errors.As(err, &lost) || lost.Endpoint != "in" || !strings.Contains(err.Error(), "not authorized") {
		t.Fatalf("got %v, want an *EndpointError", err)
	}
	h := w.Health()
	if s := h.Endpoints[0].Subscriptions[0]; s.State != host.SubscriptionDown || !strings.Contains(s.Reason, "not authorized") {
		t.Errorf("the subscription is %+v", s)
	}
	if h.Ready || h.State != host.StateStopped || !strings.Contains(h.Reason, "not authorized") {
		t.Errorf("the host is %+v", h)
	}
}

// E-14: the right to write to the dead letter is taken away while the service
// runs, and given back. It is told of the messages that it is about, which are
// counted as dead letters when they are there and not before. The right to read is
// taken away without a word (docs/mqtt.md): nothing comes, and nothing is lost.
func TestE14RightsAreTakenAwayOverMQTT(t *testing.T) {
	t.Parallel()
	rights := func(lines ...string) mosquitto.Config {
		return mosquitto.Config{
			Users: map[string]string{"ann": "secret"}, ACL: append([]string{"user ann"}, lines...),
			Lines: []string{"max_queued_messages 1000"}, // without a limit it closes the connection of who is refused
		}
	}
	all := rights("topic readwrite orders", "topic write graves")
	w := newMQTTWorkload(t, 1, all, func(s *mqtt.Settings) { s.Username, s.Password = "ann", core.NewSecret("secret") })
	graves := w.broker.Subscribe(1, []string{"graves"})
	w.serve()
	over := make(chan struct{})
	var aside sync.WaitGroup
	aside.Go(func() { w.sample(over) })

	w.broker.Reload(rights("topic readwrite orders"))
	w.broker.PublishAll(mosquitto.Message{Topic: "orders", QoS: 1}, "4") // poison
	eventually(t, "it is told", func() bool { return len(w.log.having("", "L-COPY", "graves@in", "orders", "not authorized")) > 0 })
	if c := w.counters(); c.DeadLettered != 0 || c.InWork != 1 || !w.Ready() {
		t.Errorf("meanwhile: %+v, ready: %v", c, w.Ready())
	}
	w.broker.Reload(all)
	if got := graves.Messages(1); string(got[0].Payload) != "4" {
		t.Errorf("the dead letter is %v", got)
	}
	eventually(t, "it is counted", func() bool { return w.counters().DeadLettered == 1 })

	w.broker.Reload(rights("topic write orders", "topic write graves"))
	w.broker.PublishAll(mosquitto.Message{Topic: "orders", QoS: 1}, "5")
	w.broker.Reload(all)
	w.broker.PublishAll(mosquitto.Message{Topic: "orders", QoS: 1}, "6")
	eventually(t, "what may be read again is handled", func() bool { return w.counters().Acked > 0 })
	close(over)
	aside.Wait()
	if c := w.counters(); c.Acked != 1 || !w.Ready() {
		t.Errorf("in the end: %+v, ready: %v", c, w.Ready())
	}
	w.stops()
}
