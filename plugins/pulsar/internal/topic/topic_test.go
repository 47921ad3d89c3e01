// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestParse(t *testing.T) {
	for s, want := range map[string]topic.Name{
		"orders":                          {"public", "default", "orders", topic.NoPartition},
		"acme/eu-west.1/Orders_2":         {"acme", "eu-west.1", "Orders_2", topic.NoPartition},
		"persistent://acme/eu/orders":     {"acme", "eu", "orders", topic.NoPartition},
		"orders-partition-0":              {"public", "default", "orders", 0},
		"persistent://a/b/c-partition-17": {"a", "b", "c", 17},
		"orders-partition":                {"public", "default", "orders-partition", topic.NoPartition},
	} {
		got, err := topic.Parse(s)
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v; want %+v", s, got, err, want)
			continue
		}
		if again, err := topic.Parse(got.String()); err != nil || again != got {
			t.Errorf("%q: its full form %q is %+v, %v", s, got.String(), again, err)
		}
	}
}

// What is no topic is refused with the name, the reason and a fix (S-PUL-16).
func TestParseRefuses(t *testing.T) {
	long := strings.Repeat("n", topic.Max+1)
	for s, want := range map[string]string{
		"":                                 "is empty",
		"a/b":                              "no tenant, namespace and name",
		"a/b/c/d":                          `the character '/'`,
		"a//c":                             "the namespace is empty",
		"/b/c":                             "the tenant is empty",
		"persistent://a/b":                 "no tenant, namespace and name",
		"persistent://a/b/":                "its name is empty",
		"non-persistent://a/b/c":           "keep nothing",
		"kafka://a/b/c":                    `"kafka" is no kind of topic`,
		"or ders":                          `the character ' '`,
		"überweisungen":                    `the character 'ü'`,
		"a*/b/c":                           "the tenant has the character '*'",
		"orders\x00":                       `the character '\x00'`,
		"\xff":                             "not UTF-8",
		"orders-partition-x":               `"-partition-" belongs before`,
		"orders-partition-":                `"-partition-" belongs before`,
		"orders-partition-01":              `"-partition-" belongs before`,
		"orders-partition--1":              `"-partition-" belongs before`,
		"-partition-1":                     `"-partition-" belongs before`,
		"a-partition-1-partition-2":        `"-partition-" belongs before`,
		"o-partition-99999999999999999999": `"-partition-" belongs before`,
		long:                               "the limit is 1024",
	} {
		_, err := topic.Parse(s)
		f, ok := errors.AsType[*core.Fault](err)
		if !ok {
			t.Errorf("%.40q: got %v, want a fault", s, err)
			continue
		}
		if f.Code != core.FaultInvalid || !strings.Contains(f.Message, want) || len(f.Diagnostics) != 1 || f.Diagnostics[0].Fix == "" {
			t.Errorf("%.40q: got %q with %d diagnostics, want %q", s, f, len(f.Diagnostics), want)
		}
		if len(f.Message) > 300 {
			t.Errorf("%.40q: a message of %d bytes", s, len(f.Message))
		}
	}
}

// What a server lists may have other characters; what cannot be subscribed to is
// refused all the same.
func TestParseListed(t *testing.T) {
	for s, ok := range map[string]bool{
		"persistent://a/b/orders:eu ü":       true,
		"persistent://a/b/c-partition-3":     true,
		"persistent://a/b/c-partition-x":     false, // the client takes x for a number
		"persistent://a/cluster/b/c":         false, // a name of Pulsar 1
		"non-persistent://a/b/c":             false,
		"persistent://a/b/":                  false,
		"persistent://a/b/" + "c\x00":        false,
		"persistent://te nant/b/c":           false,
		"persistent://public/default/orders": true,
	} {
		n, err := topic.ParseListed(s)
		if (err == nil) != ok {
			t.Errorf("%q: got %v, want ok: %t", s, err, ok)
		}
		if err == nil && n.String() != s {
			t.Errorf("%q: its full form is %q", s, n)
		}
	}
}

func TestPartitions(t *testing.T) {
	n, err := topic.Parse("acme/eu/orders")
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		n.At(2).String():                      "persistent://acme/eu/orders-partition-2",
		n.At(2).Base().String():               "persistent://acme/eu/orders",
		n.At(2).At(-7).String():               "persistent://acme/eu/orders",
		n.At(2).NamespacePath():               "acme/eu",
		n.At(topic.NoPartition).String():      n.String(),
		n.At(10).At(3).String()[len("pers"):]: "istent://acme/eu/orders-partition-3",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if n.Compare(n.At(0)) >= 0 || n.At(2).Compare(n.At(10)) >= 0 || n.At(2).Compare(n.At(2)) != 0 {
		t.Error("partitions are not in the order of their numbers")
	}
}

// A pattern matches whole names, of its own namespace alone (S-PUL-20, P-07).
func TestPattern(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		matches []string
		not     []string
	}{
		{"orders", []string{"orders", "orders-partition-4"}, []string{"orders-DLQ", "old-orders", "acme/default/orders"}},
		{"orders-.*", []string{"orders-eu", "orders-"}, []string{"orders", "old-orders-2"}},
		{"acme/eu/a|b", []string{"acme/eu/a", "acme/eu/b"}, []string{"acme/eu/ab", "b", "acme/us/a"}},
		{"persistent://acme/eu/[^-]+", []string{"acme/eu/orders"}, []string{"acme/eu/orders-2"}},
		{"(?i)ORDERS", []string{"orders"}, []string{"orders2"}},
		{`a\.b`, []string{"a.b"}, []string{"axb"}},
	} {
		p, err := topic.ParsePattern(tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		for want, names := range map[bool][]string{true: tt.matches, false: tt.not} {
			for _, s := range names {
				n, err := topic.Parse(s)
				if err != nil {
					t.Fatal(err)
				}
				if p.Matches(n) != want {
					t.Errorf("%s matches %s: %t, want %t", tt.pattern, s, !want, want)
				}
			}
		}
		if again, err := topic.ParsePattern(p.String()); err != nil || again.String() != p.String() || again.NamespacePath() != p.NamespacePath() {
			t.Errorf("%s: its full form %q is %q, %v", tt.pattern, p, again, err)
		}
	}
	if (topic.Pattern{}).Matches(topic.Name{}) {
		t.Error("no pattern matches no name")
	}
}

func TestPatternRefuses(t *testing.T) {
	for s, want := range map[string]string{
		"":                         "no expression",
		"a/b/":                     "no expression",
		"orders-(":                 "missing closing )",
		"a)|(b":                    "unexpected )", // else it would end the group around it
		"(?<=a)b":                  "invalid",
		"a.*/eu/x":                 "the tenant has the character '*'",
		"acme/e.*u/x":              "the namespace has the character '*'",
		"non-persistent://a/b/c.*": "keep nothing",
		"(a{1000}){1000}":          "invalid repeat count",
	} {
		_, err := topic.ParsePattern(s)
		if f, ok := errors.AsType[*core.Fault](err); !ok || f.Code != core.FaultInvalid || !strings.Contains(f.Message, want) || !strings.HasPrefix(f.Message, "the pattern ") {
			t.Errorf("%q: got %v, want %q", s, err, want)
		}
	}
}
