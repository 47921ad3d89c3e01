// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
)

// A flood of reports is 64 lines, then one a second that says how many it stands
// for; no error is hidden behind warnings, and the sum is what was reported
// (S-GEN-67).
func TestReportsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, acks)
		synctest.Wait()
		n := 0
		for range 30 { // three seconds
			for range 50 {
				n++
				code := core.FaultInvalid
				if n == 700 {
					code = core.FaultUnavailable
				}
				b.p.say(report(code, fmt.Sprint("line ", n)))
			}
			synctest.Wait()
			time.Sleep(99 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		lines := b.logs.lines("L-STREAM")
		if len(lines) != reportsAtOnce+3 {
			t.Fatalf("%d lines", len(lines))
		}
		sum, errors := 0, 0
		for _, line := range lines {
			if since, ok := line["since"].(float64); ok {
				sum += int(since)
			} else {
				sum++
			}
			if line["level"] == "ERROR" {
				errors++
				if line["position"] != "line 700" {
					t.Errorf("line %v", line)
				}
			}
			if line["plugin"] != "fake" || line["subscription"] != "jobs" {
				t.Errorf("line %v", line)
			}
		}
		if sum != n || errors != 1 {
			t.Errorf("the lines stand for %d reports of %d, %d errors", sum, n, errors)
		}
		if c := b.lane.Counters(); c.Reports != uint64(n) {
			t.Errorf("counters %+v", c)
		}
		b.p.say(report(core.FaultInvalid, "line 9"))
		synctest.Wait()
		if got := b.logs.lines("L-STREAM"); len(got) != len(lines)+1 || got[len(lines)]["position"] != "line 9" {
			t.Errorf("after a quiet second %v", got[len(lines):])
		}
	})
}

// The line about a list of the wrong length says both numbers (1.15, S-GEN-54).
func TestWrongLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, acks)
		b.lane.wrongLength(3, 2)
		lines := b.logs.lines("L-LEN")
		if len(lines) != 1 || lines[0]["level"] != "ERROR" || lines[0]["expected"] != 3.0 || lines[0]["returned"] != 2.0 {
			t.Errorf("lines %v", lines)
		}
	})
}
