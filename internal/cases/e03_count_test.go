// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
)

// E-03: on transports whose retries are copies the count travels with the copy:
// after kill -9 of the host the next one goes on with attempt 3. The interrupted
// attempt is made again with its own number, or is lost where the source has no
// acks and had handed it over.
func TestE03CountAfterARestart(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		if !copies(k.caps) {
			continue
		}
		for _, killed := range []string{"before attempt 3 starts", "while attempt 3 runs"} {
			t.Run(k.name+" "+killed, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				dir, open := gates(t)
				sub := childSubscription{From: "mem", Name: "orders", Cap: 4, Dead: "graves"}
				if k.caps.Address == "" {
					sub.RetryTo = "orders"
				}
				set := b.Settings.With("orders", k.caps)
				set.Session = "kept" // over hosts, for M
				c := childConfig{
					Endpoints:     []childEndpoint{{Name: "mem", Plugin: "memory", Path: b.Path, Settings: asMap(t, set)}},
					Subscriptions: []childSubscription{sub}, Gates: dir,
				}
				b.Publish("orders", memory.Message{
					Payload: []byte("m"), Headers: scripted("retry; until second retry; until third retry; retry"),
				})
				first := startChild(t, c, nil)
				seen := []uint64{first.next("run").Attempt, first.next("run").Attempt}
				lost := false
				if killed == "before attempt 3 starts" {
					b.Pause("orders")
					open("second")
					b.wait("the second copy and the end of its original", func(v memory.View) bool {
						a := v.Account("orders")
						return a.Published == 3 && a.Queued == 1 && a.Outstanding == 0
					})
				} else {
					open("second")
					seen = append(seen, first.next("run").Attempt)
					// Before the ack of a copied original arrives it would come once more.
					b.wait("the originals are settled", func(v memory.View) bool {
						a := v.Account("orders")
						return a.Acked+a.Sent >= 2
					})
					lost = k.name == "U"
				}
				first.kill()
				b.wait("the killed host's plugin is gone, which would take the copy with it", func(v memory.View) bool {
					return v.Subscriptions("orders") == 0
				})
				open("third")
				b.Resume("orders")
				if lost {
					if a := b.Account("orders"); a.Sent != 3 || a.Queued != 0 {
						t.Errorf("account: %v, want what U hands over to be gone", a)
					}
					return
				}
				second := startChild(t, c, nil)
				for range 4 - 2 {
					seen = append(seen, second.next("run").Attempt)
				}
				b.must(b.WaitPublished(b.ctx, "graves", 1))
				b.must(b.WaitIdle(b.ctx, "orders"))
				want := []uint64{1, 2, 3, 4}
				if killed == "while attempt 3 runs" {
					want = []uint64{1, 2, 3, 3, 4}
				}
				if diff := cmp.Diff(want, seen); diff != "" {
					t.Errorf("attempts (-want +got):\n%s", diff)
				}
				var counts []string
				for _, m := range slices.Concat(b.Published("orders"), b.Published("graves")) {
					n, _ := m.Header("x-ruststream-retry-count")
					counts = append(counts, fmt.Sprintf("%s %s", m.Queue, n))
				}
				if diff := cmp.Diff([]string{"orders ", "orders 1", "orders 2", "orders 3", "graves 4"}, counts); diff != "" {
					t.Errorf("counts (-want +got):\n%s", diff)
				}
				second.kill()
			})
		}
	}
}

// E-03: where retries are copies the time of the first failure travels with them
// as well: a host that was not there at the first one gives the message up when
// its time is over.
func TestE03FirstFailureAfterARestart(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		if !copies(k.caps) {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			set := b.Settings.With("orders", k.caps)
			set.Session = "kept" // over hosts, for M
			runs := newTally()
			serve := func(within time.Duration, fails func()) *service {
				s := newService(t)
				in := b.attach(s, "mem", set)
				rules := append(backTo(in, "orders", k.caps), host.MaxAttempts(100), host.MaxElapsed(within), host.DeadLetterTo(in.To("graves")))
				host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
					runs.ran("m", m.Attempt())
					fails()
					return errors.New("down")
				}, rules...)
				s.serve()
				return s
			}
			b.Publish("orders", memory.Text("m"))
			failed := time.Now()
			first := serve(time.Hour, func() { b.Pause("orders") })
			b.wait("the copy and the end of its original", func(v memory.View) bool {
				a := v.Account("orders")
				return a.Published == 2 && a.Queued == 1 && a.Outstanding == 0
			})
			first.stops()
			b.Resume("orders")
			second := serve(time.Millisecond, func() {})
			b.must(b.WaitPublished(b.ctx, "graves", 1))
			second.stops()
			if diff := cmp.Diff([]uint64{1, 2}, runs.attempts("m")); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
			copied, dead := b.Published("orders")[1], b.Published("graves")[0]
			at, _ := copied.Header("x-longshore-first-failure")
			when, err := time.Parse(time.RFC3339, at)
			if err != nil || when.Before(failed) || when.After(time.Now()) {
				t.Errorf("the copy says %q, %v", at, err)
			}
			if got, _ := dead.Header("x-longshore-first-failure"); got != when.Format(time.RFC3339) {
				t.Errorf("the dead letter says %q, the copy %q", got, at)
			}
		})
	}
}
