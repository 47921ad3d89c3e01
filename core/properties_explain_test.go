// SPDX-License-Identifier: Apache-2.0

//go:build !race

package core_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
)

// Every table has a row for each outcome, names every attempt once for it, and
// says the same each time.
func TestExplainIsWhole(t *testing.T) {
	want := []string{"ack", "drop", "retry", "retry-after", "dead-letter", "leave", "error", "error Is(a)", "panic", "undecodable", "snooze"}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(validSets()).Draw(t, "capabilities")
		p := rapid.SampledFrom(everyPolicy()).Draw(t, "policy")
		r := rapid.SampledFrom(retryRoutes).Draw(t, "retry")
		reaction := rapid.Custom(func(t *rapid.T) core.Reaction {
			return core.Reaction{Outcome: rapid.SampledFrom(outcomes).Draw(t, "outcome"), Spent: rapid.Bool().Draw(t, "spent")}
		})
		d := core.Declared{
			LongestBackoff: time.Minute, MaxElapsed: time.Hour, Floor: time.Second, Journal: rapid.Bool().Draw(t, "journal"),
			Panic: reaction.Draw(t, "panic"), Undecodable: reaction.Draw(t, "undecodable"),
			Errors:  []core.ErrorClass{{Match: "Is(a)", Reaction: reaction.Draw(t, "error")}},
			Snooze:  core.Snooze{Times: 1, Total: time.Hour},
			Forward: rapid.SampledFrom(retryRoutes).Draw(t, "forward"),
			Reply:   rapid.SampledFrom(retryRoutes).Draw(t, "reply"),
			Workers: rapid.IntRange(0, 2).Draw(t, "workers"), ByKey: rapid.Bool().Draw(t, "by key"),
			Publishes: rapid.SliceOfN(rapid.SampledFrom(retryRoutes), 0, 2).Draw(t, "publishes"),
		}
		table := core.Explain(p, []core.Capabilities{s}, r, deadRoute, d)
		rowsOf := map[string]map[string]bool{}
		for _, row := range table.Profiles[0].Rows {
			name, _, _ := strings.Cut(row.Outcome, " d")
			name = strings.TrimSuffix(name, " 0")
			if rowsOf[name] == nil {
				rowsOf[name] = map[string]bool{}
			}
			key := row.Outcome + ": " + row.Attempt
			if rowsOf[name][key] {
				t.Fatalf("%s is there twice", key)
			}
			rowsOf[name][key] = true
			if row.Plan == "" || row.Order == "" || row.Ends == 0 || len(row.Steps) == 0 {
				t.Fatalf("%s lacks something: %+v", key, row)
			}
		}
		for _, w := range want {
			if len(rowsOf[w]) == 0 {
				t.Fatalf("no row for %s in %v", w, rowsOf)
			}
		}
		again := core.Explain(p, []core.Capabilities{s}, r, deadRoute, d)
		if d := cmp.Diff(table, again); d != "" {
			t.Fatalf("explained twice (-first +second):\n%s", d)
		}
		js, err := json.Marshal(table)
		if err != nil {
			t.Fatal(err)
		}
		var back core.Table
		if err := json.Unmarshal(js, &back); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(table, back, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("JSON reads back differently (-want +got):\n%s", d)
		}
	})
}
