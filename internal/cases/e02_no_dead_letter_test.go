// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"strings"
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
	const (
		enough = 8   // runs behind the floor, which has grown to its second by then
		hot    = 200 // runs without one, which would go on like this
	)
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
			if strings.HasPrefix(name, "free-") && runs.runs(name) == hot {
				return nil
			}
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
	for _, k := range kinds {
		for _, policy := range []string{"plain-", "free-", "capped-"} {
			b.Publish(policy+k.name, memory.Text("bad"))
		}
	}
	b.must(b.WaitIdle(b.ctx, names("capped-")...))
	for _, name := range []string{"A", "C"} {
		eventually(t, name+" comes again and again", func() bool {
			return runs.runs("plain-"+name) >= enough && runs.runs("free-"+name) == hot
		})
	}
	for _, k := range kinds {
		plain, free := runs.times("plain-"+k.name), len(runs.times("free-"+k.name))
		switch k.name {
		case "A", "C":
			// At once, then 50, 100, 200, 400, 800 ms, then 1 s.
			for i := 2; i < len(plain); i++ {
				if least := min(time.Second, 50*time.Millisecond<<(i-2)); plain[i].Sub(plain[i-1]) < least {
					t.Errorf("%s: run %d came after %v, want %v at least", k.name, i+1, plain[i].Sub(plain[i-1]), least)
				}
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
		if times := runs.times(capped); len(times) == 3 && times[2].Sub(times[0]) > late {
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
		b.wait(name+" has its message back", func(v memory.View) bool { return v.Account(name).Queued == 1 })
	}
	// A message is told once more when its session is resumed (D5).
	if a := b.Account("plain-M"); a.Outstanding+a.Queued != 1 {
		t.Errorf("plain-M after the stop: %v", a)
	}
}
