// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// E-07: what has finished when the limit of a stop is over is acked, the others are
// listed and come again.
func TestE07HandlerThatNeverReturnsOverPulsar(t *testing.T) {
	t.Parallel()
	for grace, want := range graces {
		t.Run(grace.String(), func(t *testing.T) {
			t.Parallel()
			b := pulsarShared.Broker(t)
			peer, base := newPulsarPeer(t, b), topicsOf(t)
			w, s := newInWork(t), newService(t, host.WithDrainLimit(grace))
			in := s.pulsar("in", b.URL(), nil)
			for _, name := range works {
				s.notes(in.Subscription(base+name), func(*host.Message[[]byte]) error {
					w.handles(name, want)
					return nil
				})
			}
			s.serve()
			for _, name := range works {
				peer.one(base+name, "x")
			}
			err := w.stops(s, grace)
			e, ok := errors.AsType[*host.AbandonedError](err)
			if !ok {
				t.Fatalf("got %v, want an *AbandonedError", err)
			}
			var left []string
			for _, a := range e.Subscriptions {
				left = append(left, strings.TrimPrefix(a.Subscription, base))
				if len(a.Messages) != 1 || !strings.Contains(err.Error(), a.Messages[0]) {
					t.Errorf("listed: %+v", a)
				}
			}
			if diff := cmp.Diff(want, left); diff != "" {
				t.Errorf("given up (-want +got):\n%s", diff)
			}
			for _, name := range works {
				n := 0
				if slices.Contains(want, name) {
					n = 1
				}
				if got := b.Backlog(base+name, pulsarSub); got != int64(n) {
					t.Errorf("%s: %d are not acked, want %d", name, got, n)
				}
			}
			next := newService(t)
			in = next.pulsar("in", b.URL(), nil)
			again := newTally()
			for _, name := range works {
				host.Handle(in.Subscription(base+name), func(_ context.Context, m *host.Message[[]byte]) error {
					again.ran(name, m.Attempt())
					return nil
				})
			}
			next.serve()
			for _, name := range works {
				b.AwaitBacklog(base+name, pulsarSub, 0)
			}
			next.stops()
			if got := again.keys(); !slices.Equal(got, want) {
				t.Errorf("%v came again, want %v", got, want)
			}
		})
	}
}

// E-13: what each outcome comes to over Pulsar: all of them can be said. An ack and a
// drop are the end of a message, both retries bring it back, and nothing is published.
func TestE13SettlementAnswersOverPulsar(t *testing.T) {
	t.Parallel()
	const delay = 50 * time.Millisecond
	outcomes := map[string]error{
		"ack": nil, "drop": host.Drop(nil), "retry": host.Retry(nil), "retry_after": host.RetryAfter(delay, nil),
	}
	kinds := []string{settings.TypeShared, settings.TypeKeyShared, settings.TypeFailover, settings.TypeExclusive}
	sharing(t, kinds, func(t *testing.T, kind string) {
		b := pulsarShared.Broker(t)
		peer, base := newPulsarPeer(t, b), topicsOf(t)
		s := newService(t)
		in := s.pulsar("in", b.URL(), nil)
		runs := newTally()
		for name, err := range outcomes {
			s.notesAs(in.Subscription(base+name, host.Options(settings.SubscribeOptions{Type: kind})), runs,
				func(*host.Message[[]byte]) string { return name },
				func(*host.Message[[]byte]) error {
					if runs.runs(name) > 1 {
						return nil
					}
					return err
				})
		}
		s.serve()
		for name := range outcomes {
			peer.one(base+name, "x")
		}
		for name := range outcomes {
			b.AwaitBacklog(base+name, pulsarSub, 0)
		}
		s.stops()
		counts := kind == settings.TypeShared || kind == settings.TypeKeyShared
		want := map[string]string{
			"ack": "runs [1], acked", "drop": "runs [1], acked", "retry": "runs [1 2], acked", "retry_after": "runs [1 2], acked",
		}
		if !counts {
			want = map[string]string{
				"ack": "runs [0], acked", "drop": "runs [0], acked", "retry": "runs [0 0], acked", "retry_after": "runs [0 0], acked",
			}
		}
		got := map[string]string{}
		for name := range outcomes {
			got[name] = fmt.Sprintf("runs %v, acked", runs.attempts(name))
			if n := b.Stats(base + name).MsgInCounter; n != 1 {
				got[name] += fmt.Sprintf(", copies %d", n-1)
			}
			if lines := s.log.of("L-UNS", base+name); len(lines) > 0 {
				got[name] += ", L-UNS"
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
	})
}

// E-13: many outcomes are no lines at all.
func TestE13ManyAcksOverPulsarAreFewLines(t *testing.T) {
	t.Parallel()
	const n = 2_000
	b := pulsarShared.Broker(t)
	peer, topic := newPulsarPeer(t, b), topicsOf(t)+"t"
	s := newService(t)
	s.notesAll(s.pulsar("in", b.URL(), nil).Subscription(topic), func(m *host.Message[[]byte]) error {
		if strings.HasSuffix(string(m.Value), "0") {
			return host.Drop(nil)
		}
		return nil
	})
	s.serve()
	peer.one(topic, numbered(n)...)
	eventually(t, "all are handled", func() bool { c := s.counters(topic); return c.Acked+c.Dropped == n })
	b.AwaitBacklog(topic, pulsarSub, 0)
	s.stops()
	if all := s.log.above(); len(all) > 10 {
		t.Errorf("%d lines: %v", len(all), all)
	}
}
