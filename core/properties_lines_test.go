// SPDX-License-Identifier: Apache-2.0

//go:build !race

package core_test

import (
	"fmt"
	"testing"

	"github.com/longshore-go/longshore/core"
)

// L-UNS never stands after L-DEC nor at the cap, and nothing is said twice.
func TestPropertyLinesAreNotRepeated(t *testing.T) { report(t, "lines are not repeated") }

func linesAreNotRepeated(s *situation, path core.Path) string {
	seen := map[core.LogCode]int{}
	for _, d := range path {
		if d.Step.Do == core.ActLog {
			seen[d.Step.Code]++
		}
	}
	for code, n := range seen {
		if n > 1 {
			return fmt.Sprintf("%s is said %d times", code, n)
		}
	}
	if seen[core.LogUnsettled] > 0 && (seen[core.LogDecode] > 0 || s.capped) {
		return "L-UNS is not for a delivery that was undecodable or at the cap"
	}
	return ""
}
