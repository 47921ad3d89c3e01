// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
)

var errNoCustomer = errors.New("no such customer")

// An error that is never retried becomes a dead letter at its first attempt, with
// what is left of them unused; another one goes on.
func TestNeverRetry(t *testing.T) {
	q := newQueues() // S-GEN-93
	q.put("orders", "gone", "broken")
	s := newService()
	in := attach(s.Host, "in", q)
	runs := map[string]int{}
	host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		runs[string(m.Payload())]++
		if string(m.Payload()) == "gone" {
			return fmt.Errorf("ship: %w", errNoCustomer)
		}
		return errors.New("try again")
	}, host.MaxAttempts(3), host.DeadLetterTo(in.To("dead")), host.OnError(host.Is(errNoCustomer), host.NeverRetry))
	s.serve(t)
	eventually(t, "two dead letters", func() bool { return len(q.took("dead")) == 2 })
	s.stop()
	if err := s.result(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"gone": 1, "broken": 3}, runs); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	for _, m := range q.took("dead") {
		attempts, reason := map[string]string{"gone": "1", "broken": "3"}[string(m.Payload)], header(m, "x-longshore-reason")
		if header(m, "x-longshore-attempts") != attempts || string(m.Payload) == "gone" && reason != "ship: no such customer" {
			t.Errorf("dead letter %v", m)
		}
	}
	if len(s.log.lines("L-CAP-DL", "never retried")) != 1 || len(s.log.lines("L-CAP-DL", "attempts used up")) != 1 {
		t.Error("the log does not tell them apart")
	}
}

// A failure after the budget is the last one, whatever is left of the attempts;
// a wait that has begun is not cut short.
func TestMaxElapsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues()
		q.put("orders", "one")
		s := newService()
		in := attach(s.Host, "in", q)
		var at []time.Duration
		start := time.Now()
		host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
			at = append(at, time.Since(start).Round(time.Second))
			return errors.New("always")
		}, host.MaxAttempts(100), host.MaxElapsed(time.Minute), host.DeadLetterTo(in.To("dead")),
			host.Backoff(host.Linear(10*time.Second, time.Hour).Jitter(0)))
		s.run(t)
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []time.Duration{0, 10 * time.Second, 30 * time.Second, 60 * time.Second}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		dead := q.took("dead")
		if len(dead) != 1 {
			t.Fatalf("%d dead letters", len(dead))
		}
		if got := header(dead[0], "x-longshore-first-failure"); got != start.UTC().Format(time.RFC3339) {
			t.Errorf("first failure %q, want %v", got, start)
		}
		if len(s.log.lines("L-CAP-DL", "time for attempts used up")) != 1 {
			t.Error("the log does not say why")
		}
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
	})
}

// The host's defaults hold where nothing else is said, and what is wrong with
// them is told once.
func TestDefaultsOfAService(t *testing.T) {
	q := newQueues()
	q.put("a", "x")
	q.put("b", "x")
	s := newService(host.WithDefaults(host.MaxAttempts(2), host.DeadLetterTo(dest("in", "dead")), host.OnError(host.Is(errNoCustomer), host.AsDrop)))
	in := attach(s.Host, "in", q)
	fails := func(context.Context, *host.Message[[]byte]) error { return errors.New("always") }
	host.Handle(in.Subscription("a"), fails)
	host.Handle(in.Subscription("b"), fails, host.MaxAttempts(3))
	s.serve(t)
	eventually(t, "two dead letters", func() bool { return len(q.took("dead")) == 2 })
	s.stop()
	if err := s.result(t); err != nil {
		t.Fatal(err)
	}
	var attempts []string
	for _, m := range q.took("dead") {
		attempts = append(attempts, header(m, "x-longshore-subscription")+header(m, "x-longshore-attempts"))
	}
	slices.Sort(attempts)
	if diff := cmp.Diff([]string{"a2", "b3"}, attempts); diff != "" {
		t.Errorf("dead letters (-want +got):\n%s", diff)
	}
}

func TestDefaultsAreRefusedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		rule   host.Rule
		source *queues
		want   []string
	}{
		"by itself":           {host.MaxAttempts(0), newQueues(), []string{": MaxAttempts"}},
		"on their source":     {host.RetryTo(dest("in", "t")), counting(), []string{"a: RetryTo"}},
		"for its destination": {host.DeadLetterTo(dest("elsewhere", "q")), newQueues(), []string{"a: DeadLetterTo"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(host.WithDefaults(c.rule))
			in := attach(s.Host, "in", c.source)
			for _, name := range []string{"a", "b", "c"} {
				host.Handle(in.Subscription(name), acks)
			}
			e := startError(t, s)
			if diff := cmp.Diff(c.want, options(e)); diff != "" {
				t.Fatalf("findings (-want +got):\n%s\n%v", diff, e)
			}
			if ps := e.Findings[0].Places; len(ps) != 1 || !strings.HasPrefix(ps[0], "host/policy_test.go:") {
				t.Errorf("places %v", ps)
			}
		})
	}
}

// Explain tells what failures count as and how long a delivery is put off.
func TestExplainTellsThePolicy(t *testing.T) {
	s := newService(host.WithDefaults(host.OnPanic(host.FailFast), host.SnoozeLimit(3, time.Minute)))
	in := attach(s.Host, "in", newQueues())
	host.Handle(in.Subscription("orders"), acks, host.MaxElapsed(time.Hour), host.DeadLetterTo(in.To("dead")),
		host.Backoff(host.Constant(time.Second)), host.OnUndecodable(host.AsDeadLetter), host.OnError(host.Is(errNoCustomer), host.NeverRetry))
	tables, err := s.Explain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(tables[0].Brief()), " ")
	for _, w := range []string{
		"attempts within 1h of the first failure, backoff up to 1s, dead letters to dead@in",
		"error Is(no such customer) any WARN(L-ERR); WARN(L-CAP-DL); PUBLISH(dead@in,n); ACK",
		"panic any ERROR(L-PAN); ERROR(L-FF); RELEASE; STOP(the failure)",
		"undecodable any NORUN; WARN(L-DEC); PUBLISH(dead@in,n); ACK",
		"retry time up WARN(L-CAP-DL); PUBLISH(dead@in,n); ACK",
		"snooze d any HOLD(d); the handler again",
	} {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not stand in:\n%s", w, tables[0].Brief())
		}
	}
	if !strings.Contains(tables[0].String(), "after 3 times or 1m in all it is retry-after d") {
		t.Errorf("the bounds of a snooze do not stand in:\n%s", tables[0])
	}
}
