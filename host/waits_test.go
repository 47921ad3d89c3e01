// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/host"
)

// A stop that waits long says what for, once in ten seconds, and one that does
// not says nothing.
func TestStopSaysWhatItWaitsFor(t *testing.T) {
	for _, tt := range []struct {
		name  string
		takes time.Duration
		lines int
	}{{"at once", 0, 0}, {"for long", 25 * time.Second, 2}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueues()
				q.put("orders", "one")
				q.put("later", "two")
				s := newService()
				in := attach(s.Host, "in", q)
				host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
					time.Sleep(tt.takes)
					return nil
				})
				host.Handle(in.Subscription("later"), func(_ context.Context, m *host.Message[[]byte]) error {
					if m.Attempt() > 1 || tt.takes == 0 {
						return nil
					}
					return host.RetryAfter(15*time.Second, nil)
				}, host.MaxAttempts(2), host.RetryTo(in.To("again")))
				s.run(t)
				synctest.Wait()
				s.stop()
				time.Sleep(time.Minute)
				if err := s.result(t); err != nil {
					t.Fatal(err)
				}
				said := s.log.lines("level=INFO", "the stop waits")
				if len(said) != tt.lines {
					t.Fatalf("got %q, want %d lines", said, tt.lines)
				}
				for i, want := range []string{
					`for="1 deliveries in work of orders@in, 1 waiting copies of later@in"`, `for="1 deliveries in work of orders@in"`,
				}[:tt.lines] {
					if !strings.Contains(said[i], want) {
						t.Errorf("got %q, want it to say %s", said[i], want)
					}
				}
			})
		})
	}
}
