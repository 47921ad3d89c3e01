// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

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
