// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/rows"
)

// genHost are the rows of table S-GEN that a whole host is driven through, and the
// tests that do it. Rows that make a plan are decided by core's TestRows and carried
// out by internal/settlement's as well, and those about a declaration alone are
// found by core's TestRows: together that is every row, see TestGenMap.
var genHost = map[string]string{
	"S-GEN-01":  "TestHooks",
	"S-GEN-06":  "TestFinalFailuresWithoutDeadLetter",
	"S-GEN-41":  "TestStopWithWaitingCopies",
	"S-GEN-42":  "TestStopWithWaitingCopies",
	"S-GEN-45":  "TestFailFastStopsTheService",
	"S-GEN-48":  "TestGenUndecodable",
	"S-GEN-49":  "TestGenUndecodable",
	"S-GEN-50":  "TestGenUndecodable",
	"S-GEN-51":  "TestGenUndecodable",
	"S-GEN-52":  "TestGenReply",
	"S-GEN-53":  "TestGenBatch",
	"S-GEN-54":  "TestGenBatch",
	"S-GEN-55":  "TestGenBatch",
	"S-GEN-56":  "TestGenBatch",
	"S-GEN-57":  "TestGenBatch",
	"S-GEN-58":  "TestGenBatch",
	"S-GEN-59":  "TestGenBatch",
	"S-GEN-60":  "TestStartRefuses",
	"S-GEN-61":  "TestRetryToFuncIsAskedForEachCopy",
	"S-GEN-62":  "TestStartRefuses",
	"S-GEN-63":  "TestRulesThatAreRefused",
	"S-GEN-64":  "TestStartRefuses",
	"S-GEN-65":  "TestStartDeclares",
	"S-GEN-66":  "TestHooksGivenTwice",
	"S-GEN-67":  "TestGenReceiveError",
	"S-GEN-68":  "TestHostEndsWithItsSources",
	"S-GEN-69":  "TestGenLeave",
	"S-GEN-71":  "TestRetryToFuncIsAskedForEachCopy",
	"S-GEN-75":  "TestNothingIsDeliveredBeforeAllSubscriptionsAreOpen",
	"S-GEN-77":  "TestJournalParksWhatCannotBePublished",
	"S-GEN-86":  "TestJournalKeepsCopiesOverTheEndOfTheProcess",
	"S-GEN-92":  "TestStartWarnsOfRetriesThatCannotBe",
	"S-GEN-93":  "TestNeverRetry",
	"S-GEN-94":  "TestJournalKeepsCopiesOverTheEndOfTheProcess",
	"S-GEN-96":  "TestFinalFailuresWithoutDeadLetter",
	"S-GEN-97":  "TestMessagesAreSeenAsReceived",
	"S-GEN-98":  "TestPluginDiesWhileAHandlerRuns",
	"S-GEN-99":  "TestBackoffDelaysPlainRetries",
	"S-GEN-118": "TestJournalForgetsWhenTheCopyIsSettled",
}

// genWhole are the rows that one of those tests must be about: no plan and no
// finding of core is, or the issue of handlers asks for it.
var genWhole = []string{
	"S-GEN-48", "S-GEN-49", "S-GEN-50", "S-GEN-51", "S-GEN-52", "S-GEN-53", "S-GEN-54", "S-GEN-55", "S-GEN-56", "S-GEN-57",
	"S-GEN-58", "S-GEN-59", "S-GEN-63", "S-GEN-65", "S-GEN-66", "S-GEN-67", "S-GEN-68", "S-GEN-69", "S-GEN-75",
}

// Every row of the table is executed: as a plan, as a finding, or by a test of a
// whole host that is there and names the row.
func TestGenMap(t *testing.T) {
	all, err := rows.Read("../core/testdata/rows.tsv")
	if err != nil {
		t.Fatal(err)
	}
	tests := testsOf(t)
	checks, err := os.ReadFile("../core/rows_check_test.go")
	if err != nil {
		t.Fatal(err)
	}
	others := rows.Others()
	seen := make(map[string]bool)
	var plans, findings, whole int
	for _, r := range all {
		if !strings.HasPrefix(r.ID, "S-GEN-") {
			continue
		}
		seen[r.ID] = true
		name, hosted := genHost[r.ID]
		if hosted {
			whole++
			if text, there := tests[name]; !there || !strings.Contains(text, r.ID) {
				t.Errorf("%s: there is no %s that names it", r.ID, name)
			}
		}
		switch {
		case others[r.ID] != "":
			if !hosted {
				t.Errorf("%s is executed nowhere: %s", r.ID, others[r.ID])
			}
		case strings.Contains(string(checks), `"`+r.ID+`":`):
			findings++
		default:
			plans++
			if trials, err := r.Trials(); err != nil || len(trials) == 0 {
				t.Errorf("%s makes no plan: %v", r.ID, err)
			}
		}
	}
	for _, id := range slices.Concat(genWhole, slices.Collect(maps.Keys(genHost))) {
		if !seen[id] {
			t.Errorf("%s is no row", id)
		}
	}
	var missing []string
	for _, id := range genWhole {
		if genHost[id] == "" {
			missing = append(missing, id)
		}
	}
	if diff := cmp.Diff([]string(nil), missing); diff != "" {
		t.Errorf("rows that no whole host is driven through (-want +got):\n%s", diff)
	}
	t.Logf("%d rows: %d plans, %d findings, %d through a whole host", len(seen), plans, findings, whole)
}

// testsOf returns the text of each test of this folder, its comment included.
func testsOf(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			from := f.Pos()
			if f.Doc != nil {
				from = f.Doc.Pos()
			}
			out[f.Name.Name] = string(text[set.Position(from).Offset:set.Position(f.End()).Offset])
		}
	}
	return out
}
