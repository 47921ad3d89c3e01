// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"slices"
	"testing"

	lib "github.com/apache/pulsar-client-go/pulsar"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// E-15: what one producer publishes is handled in order, within each key and, with one
// worker, over both. Number 10 of key a, which fails twice, comes again behind all that
// was under way with it, by itself, and key b is not disturbed; where there are no counts
// its partition goes back to it.
func TestE15OrderOverPulsar(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind  string
		cap   bool
		rules []host.Rule
	}{
		"shared":             {kind: settings.TypeShared, cap: true},
		"shared without cap": {kind: settings.TypeShared},
		"key_shared":         {kind: settings.TypeKeyShared, cap: true},
		"key_shared by key":  {settings.TypeKeyShared, true, []host.Rule{host.Workers(4), host.ByKey()}},
		"exclusive":          {kind: settings.TypeExclusive},
		"failover":           {kind: settings.TypeFailover},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := pulsarShared.Broker(t)
			peer, topic := newPulsarPeer(t, b), topicsOf(t)+"t"
			seen, runs, there := &sequence{}, newTally(), make(chan struct{})
			declared := func(s *service) {
				in := s.pulsar("in", b.URL(), nil)
				rules := tt.rules
				if tt.cap {
					rules = append(slices.Clone(rules), host.MaxAttempts(5), host.DeadLetterTo(in.To(topic+"-dead")))
				}
				s.notesAs(in.Subscription(topic, host.Window(2*len(twoKeys), 0), host.Options(settings.SubscribeOptions{Type: tt.kind})), runs, func(m *host.Message[[]byte]) string {
					<-there
					seen.add(string(m.Value))
					return string(m.Value)
				}, func(m *host.Message[[]byte]) error {
					if string(m.Value) == "a10" && runs.runs("a10") < 3 {
						return host.Retry(nil)
					}
					return nil
				}, rules...)
			}
			e := newService(t)
			declared(e)
			tables, err := e.Explain(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			said := afterRetry(t, tables)
			s := newService(t)
			declared(s)
			s.serve()
			var ms []*lib.ProducerMessage
			for _, p := range twoKeys {
				ms = append(ms, &lib.ProducerMessage{Payload: []byte(p), Key: p[:1]})
			}
			peer.put(lib.ProducerOptions{Topic: topic, DisableBatching: true}, ms...)
			eventually(t, "all are there", func() bool { return s.counters(topic).Received == uint64(len(twoKeys)) })
			close(there)
			eventually(t, "a10 is done", func() bool { return runs.runs("a10") == 3 })
			b.AwaitBacklog(topic, pulsarSub, 0)
			s.stops()
			want, order := []uint64{1, 2, 3}, "comes back behind those under way"
			if tt.kind == settings.TypeExclusive || tt.kind == settings.TypeFailover {
				want, order = []uint64{0, 0, 0}, "its scope goes back to it: those behind it come again"
			}
			if tt.kind == settings.TypeShared {
				order = "comes back; there is no order" // promised; one service has it
			}
			if diff := cmp.Diff(want, runs.attempts("a10")); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
			if said != order {
				t.Errorf("Explain says: %s", said)
			}
			if want[0] == 0 {
				goesBack(t, seen.all)
				return
			}
			keyed{byKey: len(tt.rules) > 0}.check(t, behind[1], seen.all)
		})
	}
}

// goesBack checks what was handled where a retry of a10 takes its partition back: how
// much of what stands behind it was under way with a worker is a matter of time, but
// first deliveries come in order, and so does all from one a10 to the next.
func goesBack(t *testing.T, seen []string) {
	t.Helper()
	var firsts, part []string
	for i, name := range seen {
		if !slices.Contains(firsts, name) {
			firsts = append(firsts, name)
		}
		if part = append(part, name); i+1 == len(seen) || seen[i+1] == "a10" {
			if !slices.IsSortedFunc(part, func(a, b string) int { return slices.Index(twoKeys, a) - slices.Index(twoKeys, b) }) {
				t.Errorf("not in order: %v", part)
			}
			part = nil
		}
	}
	if diff := cmp.Diff(twoKeys, firsts); diff != "" {
		t.Errorf("first deliveries (-want +got):\n%s", diff)
	}
}

// E-15: on an Exclusive subscription, and on Failover, the partition goes back to what
// has failed: all behind it that is not acked comes again, in order.
func TestE15ExclusiveRewindsOverPulsar(t *testing.T) {
	t.Parallel()
	sharing(t, []string{settings.TypeExclusive, settings.TypeFailover}, func(t *testing.T, kind string) {
		b := pulsarShared.Broker(t)
		peer, topic := newPulsarPeer(t, b), topicsOf(t)+"t"
		s := newService(t)
		seen, runs := &sequence{}, newTally()
		n := uint64(len(twoKeys))
		there, back := make(chan struct{}), make(chan struct{})
		s.notesAs(s.pulsar("in", b.URL(), nil).Subscription(topic, host.Window(4*len(twoKeys), 0), host.Options(settings.SubscribeOptions{Type: kind})), runs, func(m *host.Message[[]byte]) string {
			<-there
			seen.add(string(m.Value))
			return string(m.Value)
		}, func(m *host.Message[[]byte]) error {
			switch first := runs.runs(string(m.Value)) == 1; {
			case first && string(m.Value) == "a10":
				return host.Retry(nil)
			case first && string(m.Value) == "b10": // in work until the partition has gone back
				<-back
			}
			return nil
		})
		s.serve()
		peer.one(topic, twoKeys...)
		eventually(t, "all are there", func() bool { return s.counters(topic).Received == n })
		close(there)
		at := slices.Index(twoKeys, "a10")
		eventually(t, "a10 and what is behind it come again", func() bool { return s.counters(topic).Received == 2*n-uint64(at) })
		close(back)
		b.AwaitBacklog(topic, pulsarSub, 0)
		s.stops()
		want := append(slices.Clone(twoKeys[:at+2]), twoKeys[at:]...)
		if diff := cmp.Diff(want, seen.all); diff != "" {
			t.Errorf("handled (-want +got):\n%s", diff)
		}
	})
}
