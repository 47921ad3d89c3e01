// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFaults(t *testing.T) {
	for want, f := range map[string]*core.Fault{
		`publish to "a\nb": 3 wait; wait`:       fault.Passing(core.FaultExhausted, "wait", "%s: %d wait", fault.PublishTo("a\nb"), 3),
		`publish to "jobs": too large`:          fault.Refusal(core.FaultTooLarge, "%s: too large", fault.PublishTo("jobs")),
		`subscribe: the endpoint is closed`:     fault.Closed("subscribe"),
		`publish to "": the endpoint is closed`: fault.Closed(fault.PublishTo("")),
	} {
		if f.Error() != want || f.Transient != (f.Code == core.FaultExhausted) {
			t.Errorf("got %q, transient: %t; want %q", f, f.Transient, want)
		}
	}
	if got := fault.PublishTo(strings.Repeat("n", 1000)); len(got) > 100 {
		t.Errorf("a long name makes %q", got)
	}
}
