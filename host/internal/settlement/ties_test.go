// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
)

// What is due at the same time goes in the order in which it came, as in a test
// whose clock stands still.
func TestSameTimesKeepTheOrder(t *testing.T) {
	for name, snooze := range map[string]bool{"snoozes": true, "copies": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var began []string
				b := newBench(t, kindA, func(d *Delivery) Said {
					began = append(began, string(d.Message.Payload))
					if snooze && d.Snoozes > 0 {
						return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
					}
					return Said{Outcome: later(time.Minute), Snooze: snooze}
				}, snoozable)
				synctest.Wait()
				var want []string
				for i := range 20 {
					want = append(want, fmt.Sprintf("%02d", i))
					b.p.deliver(message(want[i]))
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				got := began[len(want):]
				if !snooze {
					got = nil
					for _, o := range b.p.outgoing() {
						got = append(got, string(o.Payload))
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("got %v", got)
				}
			})
		})
	}
}
