// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/rows"
)

// checkRows are the rows that Check decides.
var checkRows = map[string]func(t *testing.T){
	"S-GEN-60": func(t *testing.T) {
		for name, p := range policies {
			wantRefusal(t, name, core.Check(p.policy, caps("A", ""), core.Route{}, p.dead, p.declared), "RetryTo")
		}
	},
	"S-GEN-62": func(t *testing.T) {
		for k := range rows.Kinds() {
			wantRefusal(t, k, core.Check(core.Policy{}, caps(k, rows.Kinds()[k].Address), open, core.Route{}, core.Declared{Cap: true}), "MaxAttempts")
		}
	},
	"S-GEN-64": func(t *testing.T) {
		for _, k := range []string{"B", "C"} {
			p := core.Policy{MaxAttempts: 3, DeadLetter: true, RetryTo: true}
			f := wantRefusal(t, k, core.Check(p, caps(k, "own"), open, open, core.Declared{Cap: true, RetryTo: true, DeadLetter: true}), "RetryTo")
			for _, w := range []string{"MaxAttempts", "DeadLetterTo"} {
				if !strings.Contains(f.String(), w) {
					t.Errorf("kind %s: %q does not name %s", k, f, w)
				}
			}
		}
	},
	"S-GEN-92": func(t *testing.T) {
		for _, k := range []string{"M", "U"} {
			wantWarning(t, k, core.Check(core.Policy{}, caps(k, "own"), open, core.Route{}, core.Declared{}), "MaxAttempts")
			wantWarning(t, k, core.Check(core.Policy{RetryTo: true}, caps(k, "own"), open, core.Route{}, core.Declared{RetryTo: true}), "MaxAttempts")
		}
		wantWarning(t, "K", core.Check(core.Policy{RetryTo: true}, caps("K", ""), open, core.Route{}, core.Declared{RetryTo: true}), "MaxAttempts")
		wantNothing(t, "T", core.Check(core.Policy{}, caps("T", "own"), open, core.Route{}, core.Declared{}))
		for name, p := range policies {
			if p.policy.Empty() {
				continue
			}
			for _, k := range []string{"M", "U", "K"} {
				wantNothing(t, k+" "+name, core.Check(p.policy, caps(k, rows.Kinds()[k].Address), open, p.dead, p.declared))
			}
		}
	},
	"S-ZMQ-15": noAddress("U"),
	"S-ZMQ-27": noAddress("U"),
	"S-ZMQ-29": noAddress("U"),
	"S-STD-02": noAddress("U"),
	"S-MQT-17": noAddress("M"),
	"S-PUL-19": func(t *testing.T) {
		// Exclusive and Failover do not count: their refusal is the transport's.
		found := core.Check(core.Policy{RetryTo: true}, caps("B", ""), open, core.Route{}, core.Declared{RetryTo: true})
		wantRefusal(t, "Shared", found, "RetryTo")
	},
	"S-PUL-37": func(t *testing.T) {
		s := rows.Kinds()["B"]
		s.MaxDelay, s.MaxHold, s.Unsettled = 10*time.Second, 10*time.Second, core.UnsettledOnTimeout
		check := func(longest time.Duration) []core.Finding {
			return core.Check(core.Policy{Backoff: true}, []core.Capabilities{s}, core.Route{}, core.Route{}, core.Declared{LongestBackoff: longest})
		}
		f := wantRefusal(t, "10s", check(10*time.Second), "Backoff")
		if !strings.Contains(f.String(), "MaxDelay 10s") {
			t.Errorf("%q does not name the limit", f)
		}
		wantRefusal(t, "1m", check(time.Minute), "Backoff")
		wantNothing(t, "just below", check(10*time.Second-1))
	},
}

// checkHalves are the rows of which one part is about the start.
var checkHalves = map[string]func(t *testing.T){"S-MQT-41": noAddress("M")}

var open = core.Route{To: core.Destination{Endpoint: "other", Name: "x"}, State: core.RouteOpen, Caps: rows.Stored()}

type declaredPolicy struct {
	policy   core.Policy
	dead     core.Route
	declared core.Declared
}

// policies are declarations without a destination for copies.
var policies = map[string]declaredPolicy{
	"nothing":     {},
	"cap":         {core.Policy{MaxAttempts: 3}, core.Route{}, core.Declared{Cap: true}},
	"dead letter": {core.Policy{DeadLetter: true}, open, core.Declared{DeadLetter: true}},
	"both":        {core.Policy{MaxAttempts: 3, DeadLetter: true}, open, core.Declared{Cap: true, DeadLetter: true}},
	"backoff":     {core.Policy{Backoff: true}, core.Route{}, core.Declared{LongestBackoff: time.Second}},
}

func caps(kind, address string) []core.Capabilities {
	c := rows.Kinds()[kind]
	c.Address = address
	return []core.Capabilities{c}
}

// noAddress is the row of a source without an address, with any declaration
// and no destination for copies.
func noAddress(kind string) func(t *testing.T) {
	return func(t *testing.T) {
		for name, p := range policies {
			wantRefusal(t, name, core.Check(p.policy, caps(kind, ""), core.Route{}, p.dead, p.declared), "RetryTo")
		}
	}
}

func find(found []core.Finding, warning bool, option string) (core.Finding, bool) {
	for _, f := range found {
		if f.Warning == warning && f.Option == option {
			return f, true
		}
	}
	return core.Finding{}, false
}

func wantRefusal(t *testing.T, name string, found []core.Finding, option string) core.Finding {
	t.Helper()
	f, ok := find(found, false, option)
	if !ok {
		t.Errorf("%s: no refusal of %s in %v", name, option, found)
	}
	if ok && (f.Message == "" || f.Fix == "") {
		t.Errorf("%s: %+v lacks its message or its fix", name, f)
	}
	return f
}

func wantWarning(t *testing.T, name string, found []core.Finding, option string) {
	t.Helper()
	if _, ok := find(found, true, option); !ok {
		t.Errorf("%s: no warning about %s in %v", name, option, found)
	}
	for _, f := range found {
		if !f.Warning {
			t.Errorf("%s: the start is refused: %v", name, f)
		}
	}
}

func wantNothing(t *testing.T, name string, found []core.Finding) {
	t.Helper()
	if len(found) > 0 {
		t.Errorf("%s: found %v, want nothing", name, found)
	}
}
