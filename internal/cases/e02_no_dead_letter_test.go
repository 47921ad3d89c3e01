// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
)

// E-02: a handler that always fails does not make a hot loop: where the source
// gives back, behind a floor that grows to a second; where it cannot, one run
// and a warning. Under a cap without a dead letter there are as many runs as the
// cap says, a warning that names the subscription, and nothing pending.
func TestE02NoDeadLetter(t *testing.T) {
	t.Parallel()
	const watched = 5 * time.Second // as telling as 20: returns 1+6 by 1.6 s, then one a second
	b := newBench(t)
	s := newService(t)
	set := b.Settings
	for _, k := range kinds {
		set = set.With("plain-"+k.name, k.caps).With("free-"+k.name, k.caps).With("capped-"+k.name, k.caps)
	}
	in := b.attach(s, "mem", set)
	runs := newTally()
	fails := func(name string) host.Handler[[]byte] {
		return func(_ context.Context, m *host.Message[[]byte]) error {
			runs.ran(name, m.Attempt())
			return host.Retry(nil)
		}
	}
	for _, k := range kinds {
		for name, rules := range map[string][]host.Rule{
			"plain-" + k.name: nil, "free-" + k.name: {host.Floor(0)}, "capped-" + k.name: {host.MaxAttempts(3)},
		} {
			host.Handle(in.Subscription(name), fails(name), append(backTo(in, name, k.caps), rules...)...)
		}
	}
	s.serve()
	began := time.Now()
	for _, k := range kinds {
		for _, policy := range []string{"plain-", "free-", "capped-"} {
			b.Publish(policy+k.name, memory.Text("bad"))
		}
	}
	b.must(b.WaitIdle(b.ctx, names("capped-")...))
	eventually(t, "the sixth second", patience, func() bool { return time.Since(began) > watched })
	took := time.Since(began)
	for _, k := range kinds {
		plain, free := runs.times("plain-"+k.name), len(runs.times("free-"+k.name))
		switch k.name {
		case "A", "C":
			// At once, then 50, 100, 200, 400, 800 ms, then 1 s.
			most := 8 + int(took/time.Second)
			if len(plain) < 6 || len(plain) > most {
				t.Errorf("%s: %d runs in %v, want 6 to %d", k.name, len(plain), took, most)
			}
			if gap := plain[1].Sub(plain[0]); gap > time.Second {
				t.Errorf("%s: the first return took %v", k.name, gap)
			}
			for i := 2; i < len(plain); i++ {
				if least := min(time.Second, 50*time.Millisecond<<(i-2)); plain[i].Sub(plain[i-1]) < least {
					t.Errorf("%s: run %d came after %v, want %v at least", k.name, i+1, plain[i].Sub(plain[i-1]), least)
				}
			}
			if free <= 2*most { // thousands on a machine with nothing else to do
				t.Errorf("%s: %d runs without a floor, and %d with one", k.name, free, len(plain))
			}
		default:
			if len(plain) != 1 || free != 1 {
				t.Errorf("%s: %d and %d runs, want one", k.name, len(plain), free)
			}
			if n := len(s.log.of("L-UNS", "plain-"+k.name)); n != 1 {
				t.Errorf("%s: %d warnings that the retry cannot be carried out, want 1", k.name, n)
			}
			if n := len(s.log.of("L-CHECK", "plain-"+k.name)); n != 1 {
				t.Errorf("%s: %d warnings at start, want 1", k.name, n)
			}
		}
		capped := "capped-" + k.name
		if n := runs.runs(capped); n != 3 {
			t.Errorf("%s: %d runs under a cap of 3", k.name, n)
		}
		if times := runs.times(capped); len(times) == 3 && times[2].Sub(times[0]) > time.Second {
			t.Errorf("%s: the runs under a cap took %v", k.name, times[2].Sub(times[0]))
		}
		lines := s.log.of("L-CAP-RJ", capped)
		if len(lines) != 1 || lines[0].text("level") != "WARN" || lines[0].text("attempt") != "3" {
			t.Errorf("%s: lines at the cap: %v", k.name, lines)
		}
		if a := b.Account(capped); a.Queued != 0 || a.Outstanding != 0 || a.Lost != 0 || k.name == "A" && a.Rejected != 1 {
			t.Errorf("%s: %v", capped, a)
		}
	}
	s.stop() // what fails for ever is given back
	if err := s.ends(); err != nil {
		t.Errorf("the host ended with %v", err)
	}
	for _, name := range []string{"plain-A", "plain-C"} {
		if a := b.Account(name); a.Queued != 1 {
			t.Errorf("%s after the stop: %v", name, a)
		}
	}
	// A message is told once more when its session is resumed (D5).
	if a := b.Account("plain-M"); a.Outstanding+a.Queued != 1 {
		t.Errorf("plain-M after the stop: %v", a)
	}
}
