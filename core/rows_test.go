// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/rows"
)

// rowsSum is the checksum of testdata/rows.tsv, a copy of the settlement rows.
const rowsSum = "3d90cfc9cc142bf944f2039125f7acf351cae6ed4a893b0c270cfc223e533b9a"

// The copy of the rows is the one that was checked in, and the shared page's
// where that lies beside the checkout.
func TestRowsAreCurrent(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "rows.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != rowsSum {
		t.Errorf("testdata/rows.tsv has checksum %s, want %s: it was changed by hand, or rows.RowsSum was not", got, rowsSum)
	}
	// core lies in the module's root, the page in the folder beside that.
	shared, err := os.ReadFile(filepath.Join("..", "..", "shared", "rows.tsv"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Log("no shared/rows.tsv beside the checkout: compared with the checksum only")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, shared) {
		t.Error("testdata/rows.tsv is stale: copy ../shared/rows.tsv over it and set rowsSum")
	}
}

// Every row is a plan that Decide makes, a finding of Check, or one of the
// rows listed with the reason why it is neither.
func TestRows(t *testing.T) {
	counts := map[string]int{}
	seen := map[string]bool{}
	all, err := rows.Read(filepath.Join("testdata", "rows.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	others := rows.Others()
	for _, r := range all {
		seen[r.ID] = true
		reason, other := others[r.ID]
		check := checkRows[r.ID]
		switch {
		case other:
			counts["other"]++
			if check != nil {
				t.Errorf("%s is listed twice", r.ID)
			}
			t.Logf("%s is no decision: %s", r.ID, reason)
		case check != nil:
			counts["check"]++
			t.Run(r.ID, func(t *testing.T) { check(t) })
		default:
			counts["plan"]++
			t.Run(r.ID, func(t *testing.T) { testPlanRow(t, r) })
		}
	}
	for id := range others {
		if !seen[id] {
			t.Errorf("%s is listed and not in rows.tsv", id)
		}
	}
	for id := range checkRows {
		if !seen[id] {
			t.Errorf("%s is checked and not in rows.tsv", id)
		}
	}
	t.Logf("%d rows: %d plans, %d findings, %d listed as neither", len(seen), counts["plan"], counts["check"], counts["other"])
}

func testPlanRow(t *testing.T, r rows.Row) {
	trials, err := r.Trials()
	if err != nil {
		t.Fatal(err)
	}
	if len(trials) == 0 {
		t.Fatal("no trial came out of the row")
	}
	if half := checkHalves[r.ID]; half != nil {
		t.Run("start", half)
	}
	for _, x := range trials {
		t.Run(x.Name, func(t *testing.T) {
			if over := strings.Contains(r.Outcome, "delivered") || strings.HasPrefix(x.Want, "NORUN; WARN(L-CAP"); core.Admit(&x.Policy, &x.Case) == over {
				t.Errorf("Admit lets the handler run: %t, want %t", over, !over)
			}
			var plan core.Plan
			core.Decide(&x.Policy, &x.Case, &plan)
			results := x.Results()
			i := 0
			path := plan.Path(func(core.Step) core.Result {
				res := core.ResultDone
				if i < len(results) {
					res = results[i]
				}
				i++
				return res
			}, nil)
			if d := cmp.Diff(x.Want, path.Text(x.Names)); d != "" {
				t.Errorf("%s %q on %q, outcome %q: plan differs (-want +got):\n%s", r.ID, r.Declaration, r.Source, r.Outcome, d)
			}
		})
	}
}
