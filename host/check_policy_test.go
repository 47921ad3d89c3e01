// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// warned starts the service and returns its L-CHECK lines, and what Explain has of
// them: both tell the same, each with its place.
func warned(t *testing.T, s *service) []string {
	t.Helper()
	tables, err := s.Explain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, table := range tables {
		for _, f := range table.Findings {
			told = append(told, f.Option+" "+f.Message+" FIX "+f.Fix)
		}
	}
	s.serve(t)
	lines := s.log.lines("code=L-CHECK")
	for _, l := range lines {
		if !strings.Contains(l, "place=host/") {
			t.Errorf("no place: %s", l)
		}
	}
	if len(lines) != len(told) {
		t.Errorf("logged %v, explained %v", lines, told)
	}
	return told
}

func TestBackoffsThatMoveMessagesIntoMemory(t *testing.T) {
	const message = "Backoff messages are acked and then wait for up to 1m0s as copies in memory, though the source would keep them: a kill"
	for name, c := range map[string]struct {
		change func(*queues)
		opts   []host.Option
		rules  []host.Rule
		want   string // "" = nothing
	}{
		"by default":       {want: message + " loses what waits FIX"},
		"short drain":      {opts: []host.Option{host.WithDrainLimit(5 * time.Second)}, want: message + ", and a stop beyond the drain limit of 5s, loses what waits FIX"},
		"long drain":       {opts: []host.Option{host.WithDrainLimit(2 * time.Minute)}},
		"with a journal":   {opts: []host.Option{host.WithJournal(newJournal().open())}},
		"lost anyway":      {change: func(q *queues) { q.source.Unsettled = core.UnsettledLost }},
		"the target waits": {change: func(q *queues) { q.publishing.MaxDelay = time.Hour }},
		"the source waits": {change: func(q *queues) { q.source.Counts = core.CountNative }},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueues()
			if c.change != nil {
				c.change(q)
			}
			s := newService(c.opts...)
			host.Handle(attach(s.Host, "in", q).Subscription("orders"), acks,
				append(c.rules, host.MaxAttempts(3), host.Backoff(host.Exponential(time.Second, time.Minute)))...)
			got := strings.Join(warned(t, s), "\n")
			if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestCapsThatDeadLettersUseUp(t *testing.T) {
	for name, c := range map[string]struct {
		limit  int
		native bool
		want   []string
	}{
		"not above": {limit: 3, want: []string{"MaxAttempts the dead letters of orders carry their count on: they come with 3, so that the first attempt here is number 4 " +
			"and, with a cap of 3, the only one FIX give the sum, MaxAttempts(6), or MaxElapsed"}},
		"above":     {limit: 6},
		"one alone": {limit: 1},
		"counted":   {limit: 3, native: true},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueues()
			if c.native {
				q.source.Counts = core.CountNative
			}
			s := newService()
			in := attach(s.Host, "in", q)
			host.Handle(in.Subscription("orders"), acks, host.MaxAttempts(3), host.DeadLetterTo(in.To("dead")))
			host.Handle(in.Subscription("dead"), acks, host.MaxAttempts(c.limit))
			if d := cmp.Diff(c.want, warned(t, s)); d != "" {
				t.Errorf("warned (-want +got):\n%s", d)
			}
		})
	}
}

func TestReactionsWithoutDeadLetter(t *testing.T) {
	rules := func() []host.Rule {
		return []host.Rule{
			host.OnError(host.Is(errors.ErrUnsupported), host.AsDeadLetter), host.OnPanic(host.AsDeadLetter), host.OnUndecodable(host.AsDeadLetter),
		}
	}
	for name, c := range map[string]struct {
		reject core.RejectMode
		dead   bool
		want   string
	}{
		"it drops":              {reject: core.RejectDrops, want: "[OnError OnPanic OnUndecodable]"},
		"the source has one":    {reject: core.RejectDeadLetters, want: "[]"},
		"the subscription does": {reject: core.RejectDrops, dead: true, want: "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueues()
			q.source.Reject = c.reject
			s := newService()
			in := attach(s.Host, "in", q)
			rs := rules()
			if c.dead {
				rs = append(rs, host.DeadLetterTo(in.To("dead")), host.MaxAttempts(2))
			}
			host.Handle(in.Subscription("orders"), acks, rs...)
			var got []string
			for _, w := range warned(t, s) {
				option, rest, _ := strings.Cut(w, " ")
				got = append(got, option)
				if !strings.HasPrefix(rest, "AsDeadLetter drops the message") {
					t.Error(rest)
				}
			}
			if fmt.Sprint(got) != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// Keys without workers stand in the table too.
func TestIdleKeysAreExplained(t *testing.T) {
	s := newService()
	host.Handle(attach(s.Host, "in", newQueues()).Subscription("orders"), acks, host.ByKey())
	if got := warned(t, s); len(got) != 1 || !strings.HasPrefix(got[0], "ByKey has no effect") {
		t.Errorf("got %v", got)
	}
}
