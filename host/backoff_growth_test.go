// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// A backoff grows on every source that can bring a message back, by whoever
// counts: the source, the copy's header, or the host by identity.
func TestBackoffGrows(t *testing.T) {
	kinds := map[string]core.Capabilities{
		"queue":          hosttest.Queue(),
		"counting queue": hosttest.CountingQueue(),
		"delay queue":    hosttest.DelayQueue(),
		"counting topic": hosttest.CountingTopic(),
		"session":        hosttest.Session(),
		"stream":         hosttest.Stream(),
	}
	for name, kind := range kinds {
		for _, capped := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", with a cap"}[capped], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := hosttest.NewBroker()
					b.Source("orders", kind)
					h := host.New(b.Replace(), hosttest.Logger(t))
					in := h.Endpoint("in", host.Plugin{Name: "mqtt"}, nil)
					begun := time.Now()
					var runs []time.Duration
					rules := []host.Rule{host.Backoff(host.Exponential(time.Second, time.Minute).Jitter(0))}
					if capped {
						rules = append(rules, host.MaxAttempts(9))
					}
					host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
						if runs = append(runs, time.Since(begun).Round(time.Millisecond)); len(runs) < 5 {
							return errors.New("not yet")
						}
						return nil
					}, rules...)
					s := hosttest.Start(t, h, b)
					b.Deliver("orders", hosttest.Text("a"))
					s.Wait()
					want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second}
					if diff := cmp.Diff(want, runs); diff != "" {
						t.Errorf("runs at (-want +got):\n%s", diff)
					}
					// What was acked is forgotten: the next message begins anew.
					begun, runs = time.Now(), nil
					b.Deliver("orders", hosttest.Text("b"))
					s.Wait()
					if len(runs) != 5 || runs[1] != time.Second {
						t.Errorf("the next message ran at %v", runs)
					}
				})
			})
		}
	}
}
