// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/mosquitto"
	mqtt "github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// E-03: the host is killed while attempt 3 runs. The next one goes on with that
// attempt, and its count is in the dead letter; at QoS 0 the message was this
// process's alone and is lost with it.
func TestE03CountOverMQTT(t *testing.T) {
	t.Parallel()
	for qos, want := range [][]uint64{{1, 2, 3}, {1, 2, 3, 3, 4}, {1, 2, 3, 3, 4}} {
		t.Run(fmt.Sprint("QoS ", qos), func(t *testing.T) {
			t.Parallel()
			b := mosquitto.Start(t, mosquitto.Config{})
			graves := b.Subscribe(1, []string{"graves"})
			dir, open := gates(t)
			set := map[string]any{"url": b.URL(), "client_id": mqttClient, "clean_start": false, "session_expiry": "1h"}
			c := childConfig{
				Endpoints:     []childEndpoint{{Name: "in", Plugin: "mqtt", Path: mqttPlugin(t), Settings: set}},
				Subscriptions: []childSubscription{{From: "in", Name: "orders", Cap: 4, Dead: "graves", Options: mqtt.SubscribeOptions{QoS: new(qos)}}},
				Gates:         dir,
			}
			sockets := inFolder(socketFolder(t))
			p := startChild(t, c, sockets)
			p.next("ready")
			b.Publish(mosquitto.Message{
				Topic: "orders", Payload: []byte("m"), QoS: qos,
				Properties: []mosquitto.Property{{Name: scriptHeader, Value: "retry; retry; until third retry; retry"}},
			})
			var seen []uint64
			for range 3 {
				seen = append(seen, p.next("run").Attempt)
			}
			if qos > 0 { // before the ack of a copied original arrives it would come once more
				b.Await(2, "Received "+[]string{"", "PUBACK", "PUBREC"}[qos]+" from "+mqttClient)
			}
			p.kill()
			open("third")
			p = startChild(t, c, sockets)
			for len(seen) < len(want) {
				seen = append(seen, p.next("run").Attempt)
			}
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
			if qos == 0 {
				p.next("ready")
				if dead := graves.Rest(); len(dead) > 0 {
					t.Errorf("dead letters: %q", dead)
				}
			} else if m := graves.Messages(1)[0]; !slices.Contains(m.Properties, mosquitto.Property{Name: countHeader, Value: "4"}) {
				t.Errorf("the dead letter is %v", m)
			}
			p.signal(syscall.SIGTERM)
			p.status()
		})
	}
}

// E-05: the broker forbids the dead letter. It is said with both names, the good
// ones go on, and the bad one stays unsettled and is dead-lettered once that is
// allowed; at QoS 0 it is lost and said to be.
func TestE05DeadLetterRefusedOverMQTT(t *testing.T) {
	t.Parallel()
	rights := func(more ...string) mosquitto.Config {
		return mosquitto.Config{
			Users: map[string]string{"ann": "secret"}, ACL: append([]string{"user ann", "topic read orders"}, more...),
			Lines: []string{"max_queued_messages 1000"}, // without a limit it closes the connection of who is refused
		}
	}
	for qos := range 3 {
		t.Run(fmt.Sprint("QoS ", qos), func(t *testing.T) {
			t.Parallel()
			b := mosquitto.Start(t, rights())
			graves := b.Subscribe(1, []string{"graves"})
			set := keptAt(b.URL())
			set.Username, set.Password = "ann", core.NewSecret("secret")
			s := newService(t, host.WithPublishLimit(4*time.Second))
			in := s.mqtt("in", set)
			runs := s.notes(in.Subscription("orders", quality(qos)), func(m *host.Message[[]byte]) error {
				if string(m.Value) == "bad" {
					return host.Retry(fmt.Errorf("no stock"))
				}
				return nil
			}, host.MaxAttempts(1), host.DeadLetterTo(in.To("graves")))
			s.serve()
			payloads := []string{"bad"}
			for i := range 20 {
				payloads = append(payloads, fmt.Sprintf("good %02d", i))
			}
			b.PublishAll(mosquitto.Message{Topic: "orders", QoS: qos}, payloads...)
			code, lost := "L-COPY", 0
			if qos == 0 {
				code, lost = "L-LOST", 1
			}
			eventually(t, "it is said, and the good ones are through", func() bool {
				return len(s.log.of(code, "orders")) > 0 && s.counters("orders").Acked == 20
			})
			if l := s.log.of(code, "orders")[0]; l.text("endpoint") != "in" || l.text("destination") != "graves@in" || !strings.Contains(l.text("error"), "not authorized") {
				t.Errorf("it says %v", l)
			}
			b.Reload(rights("topic write graves"))
			if qos > 0 {
				if got := graves.Messages(1); string(got[0].Payload) != "bad" {
					t.Errorf("the dead letter is %v", got)
				}
				eventually(t, "it is settled", func() bool { return s.counters("orders").DeadLettered == 1 })
			}
			s.stops()
			if rest := graves.Rest(); len(rest) > 0 {
				t.Errorf("more dead letters: %q", rest)
			}
			if n := len(s.log.of("L-LOST", "orders")); n != lost {
				t.Errorf("said %d times that it is lost", n)
			}
			for _, p := range payloads[1:] {
				if n := runs.runs(p); n != 1 {
					t.Errorf("%s ran %d times", p, n)
				}
			}
		})
	}
}

// E-07: what has finished when the limit of a stop is over is acked, the others are
// listed and come again.
func TestE07HandlerThatNeverReturnsOverMQTT(t *testing.T) {
	t.Parallel()
	for grace, want := range graces {
		t.Run(grace.String(), func(t *testing.T) {
			t.Parallel()
			b := mosquitto.Start(t, mosquitto.Config{})
			w, s := newInWork(t), newService(t, host.WithDrainLimit(grace))
			in := s.mqtt("in", keptAt(b.URL()))
			for _, name := range works {
				s.notes(in.Subscription(name), func(*host.Message[[]byte]) error {
					w.handles(name, want)
					return nil
				})
			}
			s.serve()
			for _, name := range works {
				b.Publish(mosquitto.Message{Topic: name, Payload: []byte("x"), QoS: 1})
			}
			err := w.stops(s, grace)
			e, ok := errors.AsType[*host.AbandonedError](err)
			if !ok {
				t.Fatalf("got %v, want an *AbandonedError", err)
			}
			var left []string
			for _, a := range e.Subscriptions {
				left = append(left, a.Subscription)
			}
			if diff := cmp.Diff(want, left); diff != "" {
				t.Errorf("given up (-want +got):\n%s", diff)
			}
			next := newService(t)
			in = next.mqtt("in", keptAt(b.URL()))
			again := newTally()
			for _, name := range works {
				host.Handle(in.Subscription(name), func(_ context.Context, m *host.Message[[]byte]) error {
					again.ran(m.Name()+" "+string(m.Value), m.Attempt())
					return nil
				})
			}
			next.serve()
			for _, name := range works {
				b.Publish(mosquitto.Message{Topic: name, Payload: []byte("new"), QoS: 1})
			}
			eventually(t, "all that is left has come", func() bool { n, _ := again.total(); return n >= len(works)+len(want) })
			next.stops()
			for _, name := range works {
				n := 0
				if slices.Contains(want, name) {
					n = 1
				}
				if got := again.runs(name + " x"); got != n {
					t.Errorf("%s came again %d times, want %d", name, got, n)
				}
			}
		})
	}
}
