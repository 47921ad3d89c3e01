// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/topic"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// checked tests one rule: the words of each name's refusal, "" = none.
func checked(t *testing.T, check func(string) *core.Diagnostic, names map[string]string) {
	t.Helper()
	for name, words := range names {
		d := check(name)
		if (d == nil) != (words == "") || d != nil && (!strings.Contains(d.Message, words) || d.Fix == "" || d.Path != "" || len(d.Message) > 400) {
			t.Errorf("%.80q: %+v, want %q", name, d, words)
		}
	}
}

var long = strings.Repeat("l", topic.Max)

// Topics have no wildcards and are text (4.7; S-MQT-21 names what has one).
func TestCheckTopic(t *testing.T) {
	checked(t, topic.CheckTopic, map[string]string{
		"orders": "", "/": "", "a//b": "", " ": "", "größe/日本": "", "$SYS/x": "", "$shared": "", "$share": "", long: "",
		"": "is empty", long + "l": "has 65536 bytes, the limit is 65535", "a\xff": "is not UTF-8", "a\x00": "null character",
		"a/+": "the topic \"a/+\" has the wildcard '+'", "a#": "the wildcard '#'", "a\n": "control character U+000A", "\u009f": "control character U+009F",
		"\ufdef": "non-character U+FDEF", "\uffff": "non-character U+FFFF", "$share/g/a": "begins with $share/", "$share/": "begins with $share/",
	})
	checked(t, topic.CheckDelivered, map[string]string{
		"a\n": "", "\uffff": "", "a": "", "": "is empty", "a/+": "wildcard", "a\x00": "null character", "$share/g/a": "begins with $share/", "\xff": "UTF-8",
	})
}

// Filters have whole levels of wildcards, # at the end alone (4.7.1).
func TestCheckFilter(t *testing.T) {
	checked(t, topic.CheckFilter, map[string]string{
		"#": "", "+": "", "a/#": "", "+/+": "", "/+": "", "+/": "", "a/+/b/#": "", "a": "", "$SYS/#": "", "+//#": "",
		"": "is empty", "a#": "only a part of a level", "a/b+/c": "only a part of a level", "++": "only a part", "#/a": "has # before its end", "a/#/": "has # before its end",
		"##": "only a part", "a/#/#": "has # before", "a/+\t": "control character", "a\t/+": "control character", "$share/g/#": "begins with $share/", long + "l": "65536 bytes", "\xff/#": "UTF-8",
	})
}

// Groups have no slash and no wildcard (4.8.2).
func TestCheckGroup(t *testing.T) {
	checked(t, topic.CheckGroup, map[string]string{
		"g": "", "workers-1": "", "$x": "", "größe": "",
		"": "is empty", "a/b": "the character '/'", "a+": "the character '+'", "#": "the character '#'", "a\n": "control character", "\xff": "UTF-8",
	})
}

// The identifiers are the reference's (3.4), and all are ones of the standard.
func TestIdentifier(t *testing.T) {
	for wire, want := range map[string]uint32{
		topic.Wire("orders", ""):              31745138,
		topic.Wire("orders/#", ""):            116248595,
		topic.Wire("jobs", "workers"):         238245131,
		topic.Wire("devices/+/telemetry", ""): 75103883,
	} {
		if got := topic.Identifier(wire); got != want {
			t.Errorf("%s: %d, want %d", wire, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		if got := topic.Identifier(rapid.String().Draw(t, "wire")); got < 1 || got > 268_435_455 {
			t.Errorf("identifier %d", got)
		}
	})
	if got := topic.Wire("a/#", "g"); got != "$share/g/a/#" {
		t.Error(got)
	}
}

// The examples of the standard (4.7.1 to 4.7.3).
func TestMatches(t *testing.T) {
	for filter, topics := range map[string]map[string]bool{
		"sport/tennis/player1/#": {"sport/tennis/player1": true, "sport/tennis/player1/ranking": true, "sport/tennis/player1/score/wimbledon": true, "sport/tennis/player2": false, "sport/tennis/player11": false},
		"sport/#":                {"sport": true, "sport/": true, "sports": false},
		"sport/+":                {"sport": false, "sport/": true, "sport/a": true, "sport/a/b": false},
		"+/+":                    {"/finance": true, "finance": false, "a/b": true},
		"/+":                     {"/finance": true, "finance": false},
		"+":                      {"/finance": false, "finance": true, "$SYS": false},
		"#":                      {"a": true, "a/b": true, "/": true, "$SYS/monitor": false},
		"+/monitor/Clients":      {"$SYS/monitor/Clients": false, "a/monitor/Clients": true},
		"$SYS/#":                 {"$SYS/": true, "$SYS": true, "$SYS/a": true},
		"$SYS/monitor/+":         {"$SYS/monitor/Clients": true},
		"ACCOUNTS":               {"Accounts": false, "ACCOUNTS": true, "ACCOUNTS/": false},
		"a/+/c":                  {"a/b/c": true, "a//c": true, "a/c": false, "a/b/c/d": false},
		"a/+/#":                  {"a": false, "a/": true, "a/b": true, "a/b/c": true},
		"":                       {"": true, "a": false},
		"a":                      {"": false, "a/b": false},
	} {
		for name, want := range topics {
			if got := topic.Matches(filter, name); got != want {
				t.Errorf("%q matches %q: %v", filter, name, got)
			}
			if got := topic.Matches(filter, []byte(name)); got != want {
				t.Errorf("%q matches %q: %v", filter, name, got)
			}
		}
	}
}

// matches is the rule level by level, as slowly as one likes.
func matches(filter, name []string) bool {
	switch {
	case len(filter) == 1 && filter[0] == "#":
		return true
	case len(filter) == 0 || len(name) == 0:
		return len(filter) == len(name)
	case filter[0] != "+" && filter[0] != name[0]:
		return false
	}
	return matches(filter[1:], name[1:])
}

// Few levels of few letters find every corner.
var (
	drawnTopic  = rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "", "$a"}), 1, 4), func(l []string) string { return strings.Join(l, "/") })
	drawnFilter = rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "", "$a", "+", "+", "#"}), 1, 4), func(l []string) string {
		if i := slices.Index(l, "#"); i >= 0 {
			l = l[:i+1]
		}
		return strings.Join(l, "/")
	})
)

// Matches is the rule, and takes no memory.
func TestMatchesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		filter, name := drawnFilter.Draw(t, "filter"), drawnTopic.Draw(t, "topic")
		if name == "" || filter == "" {
			t.Skip("none")
		}
		special := name[0] == '$' && (filter[0] == '+' || filter[0] == '#')
		want := !special && matches(strings.Split(filter, "/"), strings.Split(name, "/"))
		if got := topic.Matches(filter, name); got != want {
			t.Errorf("%q matches %q: %v", filter, name, got)
		}
	})
	name := []byte("devices/17/telemetry")
	if got := testing.AllocsPerRun(100, func() { topic.Matches("devices/+/telemetry", name) }); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

// Overlap says whether some topic is matched by both, tried over all short ones.
func TestOverlapProperty(t *testing.T) {
	var all []string
	levels := []string{"", "a", "b", "$a", "x"}
	for _, a := range levels {
		all = append(all, a)
		for _, b := range levels {
			all = append(all, a+"/"+b)
			for _, c := range levels {
				all = append(all, a+"/"+b+"/"+c)
				for _, d := range levels {
					all = append(all, a+"/"+b+"/"+c+"/"+d)
				}
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawnFilter.Draw(t, "a"), drawnFilter.Draw(t, "b")
		want := slices.ContainsFunc(all, func(name string) bool { return name != "" && topic.Matches(a, name) && topic.Matches(b, name) })
		if a == "" || b == "" {
			t.Skip("no filter")
		}
		if got := topic.Overlap(a, b); got != want {
			t.Errorf("%q and %q overlap: %v", a, b, got)
		}
		if topic.Overlap(a, b) != topic.Overlap(b, a) {
			t.Error("not the same the other way round")
		}
	})
}

// A table finds what Matches says, after values were taken out as well.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table topic.Table[int]
		filters := rapid.SliceOfN(drawnFilter, 0, 12).Draw(t, "filters")
		for i, f := range filters {
			table.Add(f, i)
		}
		gone := map[int]bool{}
		for i, f := range filters {
			if rapid.Bool().Draw(t, fmt.Sprintf("%d is taken out", i)) {
				gone[i] = true
				table.Remove(f, func(v int) bool { return v == i })
			}
		}
		for range 5 {
			name := drawnTopic.Filter(func(s string) bool { return s != "" }).Draw(t, "topic")
			var want []int
			for i, f := range filters {
				if !gone[i] && topic.Matches(f, name) {
					want = append(want, i)
				}
			}
			got := table.Match(nil, []byte(name))
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%q in %q: %v, want %v", name, filters, got, want)
			}
		}
	})
}
