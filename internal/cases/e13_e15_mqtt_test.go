// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// E-13: what each outcome comes to over MQTT, on the wire and in the log. QoS 0
// answers none of them; the others have no way to give a message back.
func TestE13SettlementAnswersOverMQTT(t *testing.T) {
	t.Parallel()
	const delay = 50 * time.Millisecond
	outcomes := map[string]error{
		"ack": nil, "drop": host.Drop(nil), "retry": host.Retry(nil), "retry_after": host.RetryAfter(delay, nil),
	}
	for qos, want := range []map[string]string{
		{"ack": "nothing, L-UNS", "drop": "nothing, L-UNS", "retry": "nothing, L-UNS", "retry_after": "copy, nothing, L-UNS"},
		{"ack": "PUBACK", "drop": "PUBACK", "retry": "nothing, L-UNS", "retry_after": "copy, PUBACK"},
		{"ack": "PUBREC", "drop": "PUBREC", "retry": "nothing, L-UNS", "retry_after": "copy, PUBREC"},
	} {
		t.Run(fmt.Sprint("QoS ", qos), func(t *testing.T) {
			t.Parallel()
			b := mosquitto.Start(t, mosquitto.Config{})
			s := newService(t)
			in := s.mqtt("in", keptAt(b.URL()))
			runs := newTally()
			for name, err := range outcomes {
				s.notesAs(in.Subscription(name, quality(qos)), runs, func(*host.Message[[]byte]) string { return name }, func(m *host.Message[[]byte]) error {
					if m.Attempt() > 1 {
						return nil
					}
					return err
				})
			}
			s.serve()
			for name := range outcomes {
				b.Publish(mosquitto.Message{Topic: name, Payload: []byte("x"), QoS: qos})
			}
			for name := range outcomes {
				n := 1
				if name == "retry_after" {
					n = 2
				}
				eventually(t, "the runs of "+name, func() bool { return runs.runs(name) == n && s.counters(name).InWork == 0 })
			}
			s.stops()
			b.Await(1, "Received DISCONNECT from "+mqttClient)
			got := map[string]string{}
			for name := range outcomes {
				got[name] = answerTo(b, name)
				if lines := s.log.of("L-UNS", name); len(lines) > 0 {
					got[name] += ", L-UNS"
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

// answerTo is what the broker has got for the first message of a topic, as its
// log tells.
func answerTo(b *mosquitto.Broker, topic string) string {
	var text string
	if len(b.Lines("Received PUBLISH from "+mqttClient, "'"+topic+"'")) > 0 {
		text = "copy, "
	}
	_, rest, _ := strings.Cut(b.Lines("Sending PUBLISH to "+mqttClient, "'"+topic+"'")[0], ", m")
	id, _, _ := strings.Cut(rest, ",")
	for _, kind := range []string{"PUBACK", "PUBREC"} {
		for _, end := range []string{",", ")"} {
			if len(b.Lines("Received "+kind+" from "+mqttClient+" (Mid: "+id+end)) > 0 {
				return text + kind
			}
		}
	}
	return text + "nothing"
}

// E-13: many outcomes at QoS 0 are a handful of lines.
func TestE13ManyAcksOverMQTTAreFewLines(t *testing.T) {
	t.Parallel()
	const n = 2_000
	b := mosquitto.Start(t, mosquitto.Config{Quiet: true})
	s := newService(t)
	runs := s.notesAll(s.mqtt("in", keptAt(b.URL())).Subscription("t", quality(0)), func(m *host.Message[[]byte]) error {
		if strings.HasSuffix(string(m.Value), "0") {
			return host.Drop(nil)
		}
		return nil
	})
	s.serve()
	b.PublishAll(mosquitto.Message{Topic: "t"}, numbered(n)...)
	eventually(t, "all are handled", func() bool { c := s.counters("t"); return c.Acked+c.Dropped == n })
	s.stops()
	if got := runs.runs("any"); got != n {
		t.Errorf("%d runs", got)
	}
	// One for acks, one for drops, and a summary of each at the end.
	if lines := s.log.of("L-UNS", "t"); len(lines) < 2 || len(lines) > 6 {
		t.Errorf("%d lines: %v", len(lines), lines)
	}
	if all := s.log.above(); len(all) > 30 {
		t.Errorf("%d lines in all", len(all))
	}
}

// notesAll notes all runs under one name.
func (s *service) notesAll(sub *host.Subscription, f func(m *host.Message[[]byte]) error, rules ...host.Rule) *tally {
	runs := newTally()
	s.notesAs(sub, runs, func(*host.Message[[]byte]) string { return "any" }, f, rules...)
	return runs
}

// E-15: what one client publishes to a topic is handled in order, within each key
// and over both. Number 10 of key a, which fails twice, comes again behind all that
// was published to its topic before its copy, as Explain says; key b is not
// disturbed.
func TestE15OrderOverMQTT(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		qos   int
		rules []host.Rule
	}{
		"QoS 0": {qos: 0}, "QoS 1": {qos: 1}, "QoS 2": {qos: 2}, "by key": {1, []host.Rule{host.Workers(4), host.ByKey()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := mosquitto.Start(t, mosquitto.Config{})
			seen, runs, there := &sequence{}, newTally(), make(chan struct{})
			declared := func(s *service) {
				in := s.mqtt("in", keptAt(b.URL()))
				s.notesAs(in.Subscription("orders", host.Window(2*len(twoKeys), 0), quality(tt.qos)), runs, func(m *host.Message[[]byte]) string {
					<-there
					seen.add(string(m.Value))
					return string(m.Value)
				}, func(m *host.Message[[]byte]) error {
					if string(m.Value) == "a10" && m.Attempt() < 3 {
						return host.Retry(nil)
					}
					return nil
				}, append([]host.Rule{host.MaxAttempts(5), host.DeadLetterTo(in.To("graves"))}, tt.rules...)...)
			}
			s := newService(t)
			declared(s)
			feed := s.mqtt("feed", settings.Settings{URL: settings.URL(b.URL()), ClientID: "feed"})
			out := host.To[core.Message](s.Host, feed.To("orders"))
			s.serve()
			for _, p := range twoKeys {
				m := core.Message{Payload: []byte(p), Headers: core.Headers{{Name: "partition-key", Value: []byte(p[:1])}}}
				if _, err := out.Publish(t.Context(), m, host.WithOptions(settings.PublishOptions{QoS: new(tt.qos)})); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "all are there", func() bool { return s.counters("orders").Received == uint64(len(twoKeys)) })
			close(there)
			eventually(t, "a10 is done", func() bool { return runs.runs("a10") == 3 })
			eventually(t, "all is done", func() bool { return s.counters("orders").InWork == 0 })
			s.stops()
			if diff := cmp.Diff([]uint64{1, 2, 3}, runs.attempts("a10")); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
			if n := slices.Index(seen.all, "a10"); n != slices.Index(twoKeys, "a10") && tt.rules == nil {
				t.Errorf("a10 is the %d.", n)
			}
			e := newService(t)
			declared(e)
			tables, err := e.Explain(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			said := afterRetry(t, tables)
			if said != "the copy joins the tail of its destination" {
				t.Errorf("Explain says: %s", said)
			}
			keyed{byKey: len(tt.rules) > 0}.check(t, said, seen.all)
		})
	}
}
