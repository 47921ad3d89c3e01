// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	lib "github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// P-06: the dead letter of a message after two runs. All that its publisher gave it is
// there, and stays his where a name is one of those that are added.
func TestP06DeadLetterIsTheMessage(t *testing.T) {
	t.Parallel()
	event := time.UnixMilli(1_700_000_000_123)
	own := map[string]string{"a": "1", "empty": "", "grüße": "☕", "x-tenant": "acme", "Case": "Kept", "properties": "ORIGIN"}
	s := row(t, settings.SubscribeOptions{}, servicetest.Always(host.Retry(nil)), toQ(host.MaxAttempts(2)))
	payload := "payload \x00\xff"
	id := s.put("t", &lib.ProducerMessage{Payload: []byte(payload), Key: "k", EventTime: event, Properties: maps.Clone(own)})[0]
	s.handled(2, 1, payload, 2, payload)
	s.left(0)
	l := s.letters(1)[0]
	if l.key != "k" || !l.event.Equal(event) {
		t.Errorf("key %q, event time %v", l.key, l.event)
	}
	if rest := s.deadOf(l, payload, 2, id); !maps.Equal(rest, own) {
		t.Errorf("properties %q, want %q", rest, own)
	}
	s.stop(0)
}

// P-07: a pattern that is part of other names: neither the archive nor the service's
// own dead letters are read. Where it matches the dead letter the start is refused:
// TestS_PUL_20.
func TestP07PatternIsTheWholeName(t *testing.T) {
	t.Parallel()
	const looks = time.Second
	s := newService(t, rowOptions{set: func(set *settings.Settings) { set.DiscoveryInterval = core.Duration(looks) }})
	for _, more := range []string{"", "-archive"} {
		s.b.CreateTopic("public/default/" + s.topic("orders"+more))
	}
	dead := s.topic("orders-DLQ")
	o := host.Options(settings.SubscribeOptions{Subscription: sub, Pattern: true})
	s.Handle(s.in.Subscription("persistent://public/default/"+s.topic("orders"), o), servicetest.Always(host.Retry(nil)),
		host.MaxAttempts(1), host.DeadLetterTo(s.in.To(dead)))
	s.Start()
	s.put("orders", texts("bad")...)
	s.put("orders-archive", texts("old")...)
	s.b.AwaitBacklog(dead, "longshore-dead-letters", 1)
	time.Sleep(2*looks + looks/2) // two looks for new topics
	if n := s.b.Backlog(dead, "longshore-dead-letters"); n != 1 {
		t.Errorf("%d dead letters", n)
	}
	for _, more := range []string{"-archive", "-DLQ"} {
		if st := s.b.Stats(s.topic("orders" + more)); st.Subscriptions[sub].Consumers != nil {
			t.Errorf("orders%s is read: %+v", more, st)
		}
	}
	servicetest.Expect(t, "runs", s.Handled(1), "persistent://public/default/"+s.topic("orders")+" 1 bad")
	s.Stop()
}

// P-08: a dead letter whose topic nobody has made or read before is there for who
// comes later.
func TestP08DeadLetterWaits(t *testing.T) {
	t.Parallel()
	s := row(t, settings.SubscribeOptions{}, servicetest.Always(host.Retry(nil)), toQ(host.MaxAttempts(1)))
	s.put("t", texts("bad")...)
	s.handled(1, 1, "bad")
	s.stop(0)
	later, err := s.raw.Subscribe(lib.ConsumerOptions{
		Topic: s.topic("q"), SubscriptionName: "later", SubscriptionInitialPosition: lib.SubscriptionPositionEarliest,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer later.Close()
	select {
	case m := <-later.Chan():
		if string(m.Payload()) != "bad" {
			t.Errorf("it is %q", m.Payload())
		}
	case <-time.After(servicetest.Limit / 9):
		t.Fatal("there is no dead letter")
	}
}

// P-18: two services whose consumers have one name, and one dead letter.
func TestP18ReplicasWithOneName(t *testing.T) {
	t.Parallel()
	const n = 50
	o := settings.SubscribeOptions{ConsumerName: "replica"}
	first := newService(t, rowOptions{})
	second := newService(t, rowOptions{})
	for _, s := range []*service{first, second} {
		s.Handle(s.reads("t", o), servicetest.Always(host.Retry(nil)), s.dead(host.MaxAttempts(1))...)
		s.Start()
	}
	first.b.AwaitConsumers(first.topic("t"), sub, 2)
	first.put("t", numbered(n)...)
	first.left(0)
	var got []string
	for _, l := range first.letters(n) {
		got = append(got, l.payload)
	}
	slices.Sort(got)
	if distinct := len(slices.Compact(got)); distinct != n {
		t.Errorf("%d messages have dead letters, want %d", distinct, n)
	}
	for i, s := range []*service{first, second} {
		runs := len(s.Runs())
		s.Handled(runs)
		s.Stop()
		s.codes(map[string]int{"L-CAP-DL": runs})
		if runs == 0 {
			t.Errorf("service %d has handled nothing", i)
		}
		if lines := s.Log.Lines("busy"); len(lines) > 0 {
			t.Errorf("it says %v", fmt.Sprint(lines[0]))
		}
	}
}
