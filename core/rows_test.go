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
)

// rowsSum is the checksum of testdata/rows.tsv, a copy of the settlement rows.
const rowsSum = "3d90cfc9cc142bf944f2039125f7acf351cae6ed4a893b0c270cfc223e533b9a"

// row is one line of rows.tsv.
type row struct {
	id, table, source, decl, outcome, attempt, expected string
}

func readRows(t *testing.T) []row {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "rows.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		f := strings.Split(line, "\t")
		if len(f) != 9 {
			t.Fatalf("line %d has %d columns, want 9", i+1, len(f))
		}
		if i > 0 {
			rows = append(rows, row{f[0], f[1], f[2], f[3], f[4], f[5], f[6]})
		}
	}
	return rows
}

// The copy of the rows is the one that was checked in, and the shared page's
// where that lies beside the checkout.
func TestRowsAreCurrent(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "rows.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != rowsSum {
		t.Errorf("testdata/rows.tsv has checksum %s, want %s: it was changed by hand, or rowsSum was not", got, rowsSum)
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
	for _, r := range readRows(t) {
		seen[r.id] = true
		reason, other := otherRows[r.id]
		check := checkRows[r.id]
		switch {
		case other:
			counts["other"]++
			if check != nil {
				t.Errorf("%s is listed twice", r.id)
			}
			t.Logf("%s is no decision: %s", r.id, reason)
		case check != nil:
			counts["check"]++
			t.Run(r.id, func(t *testing.T) { check(t) })
		default:
			counts["plan"]++
			t.Run(r.id, func(t *testing.T) { testPlanRow(t, r) })
		}
	}
	for id := range otherRows {
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

func testPlanRow(t *testing.T, r row) {
	trials, err := r.trials()
	if err != nil {
		t.Fatal(err)
	}
	if len(trials) == 0 {
		t.Fatal("no trial came out of the row")
	}
	if half := checkHalves[r.id]; half != nil {
		t.Run("start", half)
	}
	for _, x := range trials {
		t.Run(x.name, func(t *testing.T) {
			if over := strings.Contains(r.outcome, "delivered") || strings.HasPrefix(x.want, "NORUN; WARN(L-CAP"); core.Admit(&x.policy, &x.c) == over {
				t.Errorf("Admit lets the handler run: %t, want %t", over, !over)
			}
			var plan core.Plan
			core.Decide(&x.policy, &x.c, &plan)
			results := x.results()
			i := 0
			path := plan.Path(func(core.Step) core.Result {
				res := core.ResultDone
				if i < len(results) {
					res = results[i]
				}
				i++
				return res
			}, nil)
			if d := cmp.Diff(x.want, path.Text(x.names)); d != "" {
				t.Errorf("%s %q on %q, outcome %q: plan differs (-want +got):\n%s", r.id, r.decl, r.source, r.outcome, d)
			}
		})
	}
}
