// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
)

const (
	byHost      = "the host finds or does it: "
	byTransport = "the transport finds or does it: "
	inDetail    = "seen on the transport: "
)

// otherRows are the rows that no decision and no check of this package is
// about, with what is.
var otherRows = map[string]string{
	"S-GEN-63": byHost + "a rule given twice",
	"S-GEN-65": byHost + "what is declared is logged at start",
	"S-GEN-66": byHost + "a rule given twice",
	"S-GEN-67": byHost + "a receive error is no delivery",
	"S-GEN-68": byHost + "the end of a stream is no delivery",
	"S-GEN-75": byHost + "the order of the start",
	"S-ZMQ-10": byTransport + "a dead letter that its destination cannot carry, or that comes back",
	"S-ZMQ-16": byTransport + "a destination that nothing can carry",
	"S-ZMQ-24": byHost + "a dead letter that comes back, from Inspect",
	"S-ZMQ-25": byTransport + "a dead letter that nothing can carry",
	"S-ZMQ-30": byTransport + "a destination that nothing can carry",
	"S-ZMQ-36": byTransport + "two subscriptions on one bound endpoint",
	"S-ZMQ-37": byTransport + "an address",
	"S-ZMQ-38": byTransport + "batches on RPC",
	"S-ZMQ-42": inDetail + "reconnecting",
	"S-FIL-08": byTransport + "a key",
	"S-FIL-11": byTransport + "the end of a replay is no delivery",
	"S-FIL-12": byTransport + "an end mark is no delivery",
	"S-FIL-15": byTransport + "two endpoints on one path",
	"S-FIL-16": byTransport + "a missing file",
	"S-FIL-17": byTransport + "a setting",
	"S-FIL-18": byTransport + "a key",
	"S-FIL-19": byTransport + "a seek",
	"S-FIL-22": inDetail + "a start position",
	"S-FIL-23": byTransport + "a start position",
	"S-FIL-24": byHost + "a dead letter that comes back, from Inspect",
	"S-FIL-28": byHost + "a dead letter that comes back through another registration",
	"S-STD-09": inDetail + "a line that cannot be read",
	"S-STD-10": byTransport + "the end of the input is no delivery",
	"S-STD-11": byTransport + "an empty payload",
	"S-STD-12": inDetail + "a line without a key",
	"S-STD-15": byHost + "a dead letter that comes back, from Inspect",
	"S-MQT-20": byHost + "a dead letter that comes back, from Inspect",
	"S-MQT-21": byTransport + "a wildcard in a topic",
	"S-MQT-22": byTransport + "a share group",
	"S-MQT-27": byTransport + "overlapping filters",
	"S-MQT-28": inDetail + "one filter twice",
	"S-MQT-33": byTransport + "a setting",
	"S-MQT-43": inDetail + "when a publish returns",
	"S-PUL-13": byTransport + "a cap without a dead letter",
	"S-PUL-14": byTransport + "a dead letter without a cap",
	"S-PUL-15": byTransport + "a declaration on a type that does not count",
	"S-PUL-16": byTransport + "a topic",
	"S-PUL-17": byTransport + "a bare topic",
	"S-PUL-20": byHost + "a dead letter that comes back, from Inspect",
	"S-PUL-21": byHost + "a crash makes no plan",
	"S-PUL-28": inDetail + "a second consumer",
	"S-PUL-31": byTransport + "a message too large",
	"S-PUL-32": byTransport + "a header that is no text",
	"S-PUL-39": byTransport + "a header name twice",
}

// checkRows are the rows that Check decides.
var checkRows = map[string]func(t *testing.T){
	"S-GEN-60": func(t *testing.T) {
		for name, p := range policies {
			wantRefusal(t, name, core.Check(p.policy, caps("A", ""), core.Route{}, p.dead, p.declared), "RetryTo")
		}
	},
	"S-GEN-62": func(t *testing.T) {
		for k := range kinds {
			wantRefusal(t, k, core.Check(core.Policy{}, caps(k, kinds[k].Address), open, core.Route{}, core.Declared{Cap: true}), "MaxAttempts")
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
				wantNothing(t, k+" "+name, core.Check(p.policy, caps(k, kinds[k].Address), open, p.dead, p.declared))
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
		s := kinds["B"]
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

var open = core.Route{To: core.Destination{Endpoint: "other", Name: "x"}, State: core.RouteOpen, Caps: storedCaps}

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
	c := kinds[kind]
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
