// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	lib "github.com/apache/pulsar-client-go/pulsar"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/internal/tcpproxy"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// nothing checks that a dead letter has no other properties.
func nothing(t *testing.T, rest map[string]string) {
	t.Helper()
	if len(rest) > 0 {
		t.Errorf("the dead letter has %q", rest)
	}
}

// dies is a service whose handler says the same to every delivery, with a cap of
// three: three runs, one dead letter, nothing left.
func dies(t *testing.T, o settings.SubscribeOptions, says error) {
	t.Helper()
	s := row(t, o, servicetest.Always(says), toQ(host.MaxAttempts(3)))
	id := s.put("t", texts("x")...)[0]
	s.handled(3, 1, "x", 2, "x", 3, "x")
	s.left(0)
	nothing(t, s.deadOf(s.letters(1)[0], "x", 3, id))
	s.stop(0)
	s.codes(map[string]int{"L-CAP-DL": 1})
}

func TestS_PUL_08(t *testing.T) {
	t.Parallel()
	dies(t, settings.SubscribeOptions{}, host.Retry(nil))
}

// The dead letter is the broker's before the delivery is acked.
func TestS_PUL_08_order(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	p := proxy.Start(t, b.Address())
	s := newService(t, rowOptions{url: p.URL()})
	s.Handle(s.reads("t", settings.SubscribeOptions{}), servicetest.Always(host.Retry(nil)), s.dead(host.MaxAttempts(1))...)
	s.Start()
	p.Record(proxy.SendReceipt, proxy.Ack)
	s.put("t", texts("x")...)
	s.handled(1, 1, "x")
	s.stop(0)
	want := []tcpproxy.Passed{{Direction: proxy.ToClient, Kind: proxy.SendReceipt}, {Direction: proxy.ToServer, Kind: proxy.Ack}}
	if diff := cmp.Diff(want, p.Recorded()); diff != "" {
		t.Errorf("passed (-want +got):\n%s", diff)
	}
}

// The key decides who gets a message, and stays.
func TestS_PUL_09(t *testing.T) {
	t.Parallel()
	s := row(t, settings.SubscribeOptions{Type: settings.TypeKeyShared}, servicetest.Always(host.Retry(nil)), toQ(host.MaxAttempts(3)))
	id := s.put("t", &lib.ProducerMessage{Payload: []byte("x"), Key: "customer 7"})[0]
	s.handled(3, 1, "x", 2, "x", 3, "x")
	s.left(0)
	l := s.letters(1)[0]
	if l.key != "customer 7" {
		t.Errorf("the key is %q", l.key)
	}
	nothing(t, s.deadOf(l, "x", 3, id))
	s.stop(0)
	s.codes(map[string]int{"L-CAP-DL": 1})
}

// The last one does not wait.
func TestS_PUL_10(t *testing.T) {
	t.Parallel()
	const d = 3 * time.Second
	s := row(t, settings.SubscribeOptions{}, servicetest.Always(host.RetryAfter(d, nil)), toQ(host.MaxAttempts(3)))
	began := time.Now()
	id := s.put("t", texts("x")...)[0]
	s.ran(3, 1, "x", 2, "x", 3, "x")
	if took := time.Since(began); took < 2*d-40*time.Millisecond {
		t.Errorf("three runs within %v", took)
	}
	if s.Settlement(); s.Settlement().Result != host.ResultRetried {
		t.Error("the second is not retried")
	}
	if last := s.Settlement(); last.Result != host.ResultDeadLettered || last.Took > d {
		t.Errorf("the third: %v, after %v", last.Result, last.Took)
	}
	s.left(0)
	nothing(t, s.deadOf(s.letters(1)[0], "x", 3, id))
	s.stop(0)
	s.codes(map[string]int{"L-CAP-DL": 1})
}

// All that a message has stays as it was, and where it comes from is added where it
// is not there.
func TestS_PUL_11(t *testing.T) {
	t.Parallel()
	s := row(t, settings.SubscribeOptions{}, servicetest.Always(host.Retry(nil)), toQ(host.MaxAttempts(1)))
	event := time.UnixMilli(1_700_000_000_123)
	own := map[string]string{"Tenant": "a", "ÿ": "ünï", "empty": "", "x-ruststream-retry-count": "5"}
	id := s.put("t", &lib.ProducerMessage{
		Payload: []byte{0, 0xff}, Key: "k", OrderingKey: "o", EventTime: event, Properties: maps.Clone(own),
	})[0]
	s.Handled(1)
	second := map[string]string{"REAL_TOPIC": "elsewhere", "ORIGIN_MESSAGE_ID": "1:2:3"}
	s.put("t", &lib.ProducerMessage{Payload: []byte("y"), Properties: maps.Clone(second)})
	s.Handled(1)
	s.left(0)
	ls := s.letters(2)
	if l := ls[0]; l.key != "k" || l.ordering != "o" || !l.event.Equal(event) {
		t.Errorf("the dead letter is %+v", l)
	}
	rest := s.deadOf(ls[0], "\x00\xff", 1, id)
	delete(own, "x-ruststream-retry-count")
	if !maps.Equal(rest, own) {
		t.Errorf("its properties are %q, want %q", rest, own)
	}
	for name, want := range second {
		if got := ls[1].properties[name]; got != want {
			t.Errorf("%s is %q, was %q", name, got, want)
		}
	}
	s.stop(0)
	s.codes(map[string]int{"L-CAP-DL": 2})
}

// With default_subscription a topic needs no more.
func TestS_PUL_18(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{set: func(set *settings.Settings) { set.DefaultSubscription = sub }})
	s.Handle(s.in.Subscription(s.topic("t")), servicetest.Always(host.Retry(nil)), s.dead(host.MaxAttempts(3))...)
	s.Start()
	id := s.put("t", texts("x")...)[0]
	s.handled(3, 1, "x", 2, "x", 3, "x")
	s.left(0)
	nothing(t, s.deadOf(s.letters(1)[0], "x", 3, id))
	s.stop(0)
	s.codes(map[string]int{"L-CAP-DL": 1})
}

// One consumer ends in its second attempt, which does not count; the other goes on
// where the broker is.
func TestS_PUL_24(t *testing.T) {
	t.Parallel()
	first := newService(t, rowOptions{host: []host.Option{host.WithDrainLimit(500 * time.Millisecond)}})
	seen := make(chan uint64, 1)
	host.Handle(first.reads("t", settings.SubscribeOptions{}), func(ctx context.Context, m *host.Message[[]byte]) error {
		if m.Attempt() == 1 {
			return host.Retry(nil)
		}
		seen <- m.Attempt()
		<-ctx.Done() // the stop leaves it unacked
		return host.Leave()
	}, first.dead(host.MaxAttempts(3))...)
	first.Start()
	id := first.put("t", texts("x")...)[0]
	if n := <-seen; n != 2 {
		t.Errorf("attempt %d", n)
	}
	second := newService(t, rowOptions{base: first.base})
	second.Handle(second.reads("t", settings.SubscribeOptions{}), servicetest.Always(host.Retry(nil)), second.dead(host.MaxAttempts(3))...)
	second.Start()
	second.b.AwaitConsumers(second.topic("t"), sub, 2)
	first.Cancel()
	if err := first.Wait(); err == nil {
		t.Error("no handler was cancelled")
	}
	second.handled(2, 2, "x", 3, "x")
	second.left(0)
	nothing(t, second.deadOf(second.letters(1)[0], "x", 3, id))
	second.stop(0)
	second.codes(map[string]int{"L-CAP-DL": 1})
}

// Other messages go on while a dead letter cannot be published, and once it can, it
// leaves without another run.
func TestS_PUL_25(t *testing.T) {
	t.Parallel()
	b := permitting(t)
	s := newService(t, rowOptions{broker: b, set: as(t, b, "shop"), host: []host.Option{host.WithPublishLimit(3 * time.Second)}})
	b.GrantTopic(s.topic("t"), "shop", "consume")
	s.Handle(s.reads("t", settings.SubscribeOptions{AckTimeout: core.Duration(4 * time.Second)}), func(m *host.Message[[]byte]) error {
		if string(m.Value) == "fine" {
			return nil
		}
		return host.Retry(nil)
	}, s.dead(host.MaxAttempts(2))...)
	s.Start()
	s.put("t", texts("x")...)
	s.ran(2, 1, "x", 2, "x")
	s.Eventually("it is said", func() bool { return s.Log.Coded("L-COPY") > 0 })
	s.put("t", texts("fine")...)
	s.ran(1, 1, "fine")
	s.left(1)
	b.GrantTopic(s.topic("q"), "shop", "produce", "consume")
	s.left(0)
	if l := s.letters(1)[0]; l.payload != "x" {
		t.Errorf("the dead letter is %+v", l)
	}
	s.stop(0)
	if n := s.Log.Coded("L-CAP-DL"); n < 2 {
		t.Errorf("%d lines of L-CAP-DL\n%s", n, s.Log)
	}
	if s.Log.Coded("L-STREAM") > 0 || s.Log.Coded("L-LOST") > 0 {
		t.Errorf("log: %s", s.Log)
	}
}

func TestS_PUL_27(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	host.Handle(s.reads("t", settings.SubscribeOptions{}), func(_ context.Context, m *host.Message[order]) error {
		t.Errorf("the handler got %v", m.Value)
		return nil
	}, s.dead(host.MaxAttempts(3), host.OnUndecodable(host.AsRetry))...)
	s.Start()
	id := s.put("t", texts("{")...)[0]
	l := s.letters(1)[0]
	s.left(0)
	rest := s.deadOf(l, "{", 3, id)
	for _, name := range []string{"x-longshore-error", "x-longshore-reason"} {
		if rest[name] == "" {
			t.Errorf("the dead letter has no %s: %q", name, rest)
		}
		delete(rest, name)
	}
	nothing(t, rest)
	s.stop(0)
	s.codes(map[string]int{"L-DEC": 3, "L-CAP-DL": 1})
}

// What is left counts as well: the third delivery is over the cap, and not handled.
func TestS_PUL_35(t *testing.T) {
	t.Parallel()
	o := settings.SubscribeOptions{AckTimeout: core.Duration(3 * time.Second)}
	s := row(t, o, servicetest.Always(host.Leave()), toQ(host.MaxAttempts(2)))
	id := s.put("t", texts("x")...)[0]
	s.ran(2, 1, "x", 2, "x")
	s.left(0)
	nothing(t, s.deadOf(s.letters(1)[0], "x", 3, id))
	s.stop(0)
	s.codes(map[string]int{"L-CAP-DL": 1})
}

func TestS_PUL_38(t *testing.T) {
	types(t, counting, func(t *testing.T, o settings.SubscribeOptions) { dies(t, o, host.Retry(nil)) })
}

// permitting returns a broker of which roles may do only what they are granted, over
// TLS.
func permitting(t *testing.T) *pulsarbroker.Broker {
	t.Helper()
	return pulsarbroker.Start(t, pulsarbroker.Config{Tokens: true, Authorize: true, TLS: true})
}

// as has a service introduce itself as a role, with a token from a file.
func as(t *testing.T, b *pulsarbroker.Broker, role string) func(*settings.Settings) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(b.Token(role)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(s *settings.Settings) { s.TokenFile, s.TLSCA = file, b.CA() }
}
