// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	lib "github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/programtest"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// sub is the subscription of a service, unless a test says another.
const sub = "s"

func pluginPath(t *testing.T) string {
	t.Helper()
	return programtest.Path(t, "github.com/longshore-go/longshore/plugins/pulsar/longshore-transport-pulsar")
}

// service is a host with this plugin as a process, and topics of a test's own on
// the broker that all tests share.
type service struct {
	*servicetest.Service
	t    *testing.T
	b    *pulsarbroker.Broker
	base string // what its topics begin with
	in   *host.Endpoint
	raw  lib.Client // the library, beside the service
}

// rowOptions are what a test changes of a service.
type rowOptions struct {
	broker *pulsarbroker.Broker // nil = the shared one
	url    string               // "" = the broker's
	base   string               // "" = the test's own
	set    func(*settings.Settings)
	host   []host.Option
}

// newService returns a service whose handlers are still to be set.
func newService(t *testing.T, o rowOptions) *service {
	t.Helper()
	if o.broker == nil {
		o.broker = broker.Broker(t)
	}
	base := strings.NewReplacer("/", "-", "S_PUL_", "", "Test", "row-", ",", "", "#", "-").Replace(t.Name())
	s := &service{Service: servicetest.New(t, o.host...), t: t, b: o.broker, base: cmp.Or(o.base, strings.ToLower(base))}
	set := settings.Settings{URL: settings.URL(cmp.Or(o.url, o.broker.URL()))}
	if o.set != nil {
		o.set(&set)
	}
	s.in = s.Endpoint("in", host.Plugin{Name: "pulsar", Path: pluginPath(t)}, set)
	raw, err := lib.NewClient(lib.ClientOptions{
		URL: o.broker.PlainURL(), Logger: log.DefaultNopLogger(), Authentication: lib.NewAuthenticationToken(o.broker.Token("admin")),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(raw.Close)
	s.raw = raw
	return s
}

// topic returns a topic of the test's own.
func (s *service) topic(short string) string { return s.base + "-" + short }

// dead are rules with a dead letter to q.
func (s *service) dead(rs ...host.Rule) []host.Rule {
	return append(rs, host.DeadLetterTo(s.in.To(s.topic("q"))))
}

// reads returns a subscription to a topic of the test's own.
func (s *service) reads(short string, o settings.SubscribeOptions, more ...host.SubscriptionOption) *host.Subscription {
	o.Subscription = cmp.Or(o.Subscription, sub)
	return s.in.Subscription(s.topic(short), append([]host.SubscriptionOption{host.Options(o)}, more...)...)
}

// row is a running service with one subscription to t whose handler says what is
// given.
func row(t *testing.T, o settings.SubscribeOptions, says func(*host.Message[[]byte]) error, rules func(*service) []host.Rule) *service {
	t.Helper()
	s := newService(t, rowOptions{})
	var rs []host.Rule
	if rules != nil {
		rs = rules(s)
	}
	s.Handle(s.reads("t", o), says, rs...)
	s.Start()
	return s
}

// rules returns rules that name no destination.
func rules(rs ...host.Rule) func(*service) []host.Rule {
	return func(*service) []host.Rule { return rs }
}

// toQ are rules with a dead letter to q.
func toQ(rs ...host.Rule) func(*service) []host.Rule {
	return func(s *service) []host.Rule { return s.dead(rs...) }
}

// until returns a handler that says something the first n times that it sees a
// payload, then acks it.
func until(n int, says error) func(*host.Message[[]byte]) error {
	seen := map[string]int{}
	return func(m *host.Message[[]byte]) error {
		if seen[string(m.Value)]++; seen[string(m.Value)] > n {
			return nil
		}
		return says
	}
}

// clock notes when runs begin.
type clock struct {
	mu sync.Mutex
	at []time.Time
}

// of returns a handler whose runs are noted.
func (c *clock) of(f func(*host.Message[[]byte]) error) func(*host.Message[[]byte]) error {
	return func(m *host.Message[[]byte]) error {
		c.mu.Lock()
		c.at = append(c.at, time.Now())
		c.mu.Unlock()
		return f(m)
	}
}

// between is the time between two runs, the first one being 1; ask once the service
// has ended.
func (c *clock) between(i, j int) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at[j-1].Sub(c.at[i-1])
}

// types runs a test with types of subscriptions, side by side.
func types(t *testing.T, ts []string, f func(t *testing.T, o settings.SubscribeOptions)) {
	for _, kind := range ts {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f(t, settings.SubscribeOptions{Type: kind})
		})
	}
}

var (
	counting = []string{settings.TypeShared, settings.TypeKeyShared}
	ordered  = []string{settings.TypeExclusive, settings.TypeFailover}
	all      = append(slices.Clone(counting), ordered...)
)

// counts says whether the broker counts the deliveries of a type.
func counts(o settings.SubscribeOptions) bool {
	return slices.Contains(counting, cmp.Or(o.Type, settings.TypeShared))
}

// nth is the attempt of the n-th delivery.
func nth(o settings.SubscribeOptions, n int) int {
	if counts(o) {
		return n
	}
	return 0
}

// put publishes messages to a topic of the test's own, in order and all on their way at
// a time, and returns their ids as the broker has them.
func (s *service) put(short string, ms ...*lib.ProducerMessage) []lib.MessageID {
	s.t.Helper()
	p, err := s.raw.CreateProducer(lib.ProducerOptions{Topic: s.topic(short), DisableBatching: true, SendTimeout: -1})
	if err != nil {
		s.t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), servicetest.Limit/3)
	defer cancel()
	ids, answers := make([]lib.MessageID, len(ms)), make(chan error, len(ms))
	for i, m := range ms {
		p.SendAsync(ctx, m, func(id lib.MessageID, _ *lib.ProducerMessage, err error) {
			ids[i] = id
			answers <- err
		})
	}
	for range ms {
		if err := <-answers; err != nil {
			s.t.Fatal(err)
		}
	}
	return ids
}

// texts are messages of payloads.
func texts(payloads ...string) (ms []*lib.ProducerMessage) {
	for _, p := range payloads {
		ms = append(ms, &lib.ProducerMessage{Payload: []byte(p)})
	}
	return ms
}

// run is how a run is noted.
func (s *service) run(short string, attempt int, payload string) string {
	return fmt.Sprintf("%s %d %s", s.topic(short), attempt, payload)
}

// handled waits for n runs of t with their settlements, and compares them; want is
// attempts and payloads.
func (s *service) handled(n int, want ...any) {
	s.t.Helper()
	servicetest.Expect(s.t, "runs", s.Handled(n), s.runsOf(want)...)
}

// ran waits for n runs of t, and compares them.
func (s *service) ran(n int, want ...any) {
	s.t.Helper()
	servicetest.Expect(s.t, "runs", s.Ran(n), s.runsOf(want)...)
}

func (s *service) runsOf(want []any) (runs []string) {
	for i := 0; i < len(want); i += 2 {
		runs = append(runs, s.run("t", want[i].(int), want[i+1].(string)))
	}
	return runs
}

// left checks how many messages of t its subscription has not acked, once that is
// so, and that this stays so when the service has ended.
func (s *service) left(n int64) {
	s.t.Helper()
	s.b.AwaitBacklog(s.topic("t"), sub, n)
}

// stop stops the service and checks what is left at the broker.
func (s *service) stop(left int64) {
	s.t.Helper()
	s.Stop()
	s.b.AwaitConsumers(s.topic("t"), sub, 0)
	if got := s.b.Backlog(s.topic("t"), sub); got != left {
		s.t.Errorf("%d messages are left unacked, want %d", got, left)
	}
}

// codes compares how often lines with codes were logged. Those that are not named
// may not be there, but L-CHECK, L-DECL and L-ERR.
func (s *service) codes(want map[string]int) {
	s.t.Helper()
	for _, code := range []string{
		"L-UNS", "L-CAP-DL", "L-CAP-RJ", "L-LOST", "L-DELAY", "L-DEC", "L-PAN", "L-FF", "L-REPLY", "L-STREAM", "L-ABND", "L-COPY", "L-DBL", "L-REF", "L-COUNT", "L-HELD", "L-NACK",
	} {
		if got := s.Log.Coded(code); got != want[code] {
			s.t.Errorf("%d lines of %s, want %d\n%s", got, code, want[code], s.Log)
		}
	}
}

// letter is a dead letter as the library reads it.
type letter struct {
	payload, key, ordering string
	event                  time.Time
	properties             map[string]string
}

// letters are the messages of q, once it has n of them; those of an earlier call
// are there again.
func (s *service) letters(n int) []letter {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), servicetest.Limit/3)
	defer cancel()
	r, err := s.raw.CreateReader(lib.ReaderOptions{Topic: s.topic("q"), StartMessageID: lib.EarliestMessageID()})
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	var got []letter
	for len(got) < n || r.HasNext() {
		m, err := r.Next(ctx)
		if err != nil {
			s.t.Fatalf("%d of %d dead letters: %v\n%s", len(got), n, err, s.Log)
		}
		got = append(got, letter{string(m.Payload()), m.Key(), m.OrderingKey(), m.EventTime(), maps.Clone(m.Properties())})
	}
	if len(got) != n {
		s.t.Errorf("%d dead letters, want %d: %v", len(got), n, got)
	}
	return got
}

// deadOf checks a dead letter of t: the headers of the host that always are there,
// where it is from, and that there is no count; what else it has is returned.
func (s *service) deadOf(l letter, payload string, attempts int, id lib.MessageID) (rest map[string]string) {
	s.t.Helper()
	rest = l.properties
	if l.payload != payload {
		s.t.Errorf("the dead letter is %q, want %q", l.payload, payload)
	}
	for name, want := range map[string]string{
		"x-longshore-endpoint": "in", "x-longshore-subscription": s.topic("t"), "x-longshore-attempts": fmt.Sprint(attempts),
		"REAL_TOPIC": s.topic("t"), "ORIGIN_MESSAGE_ID": fmt.Sprintf("%d:%d:-1", id.LedgerID(), id.EntryID()),
	} {
		if rest[name] != want {
			s.t.Errorf("%s is %q, want %q", name, rest[name], want)
		}
		delete(rest, name)
	}
	if at, err := time.Parse(time.RFC3339, rest["x-longshore-time"]); err != nil || !strings.HasSuffix(rest["x-longshore-time"], "Z") || time.Since(at) > time.Hour {
		s.t.Errorf("the dead letter is of %q", rest["x-longshore-time"])
	}
	delete(rest, "x-longshore-time")
	return rest
}
