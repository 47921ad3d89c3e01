// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/longshore-go/longshore/core"
)

// shown are the outcomes that the demo's handler has; the table has more.
func shown(outcome string) bool {
	switch outcome {
	case "ack", "drop", "error", "retry-after d", "panic", "undecodable":
		return true
	}
	return false
}

// foretold is the short form of settlement tables: the steps alone. longshore
// explain prints the rest.
func foretold(tables []core.Table) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, t := range tables {
		for _, p := range t.Profiles {
			for _, r := range p.Rows {
				if shown(r.Outcome) {
					_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\n", r.Outcome, r.Attempt, r.Plan)
				}
			}
		}
	}
	_ = w.Flush() // writes to memory
	return b.String()
}
