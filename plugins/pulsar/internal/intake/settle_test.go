// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// Results stay as they are while others are settled: what was held goes back by a
// goroutine of its own.
func TestResultsStay(t *testing.T) {
	t.Parallel()
	in := newIntake(Config{}, calls{})
	lost := &entry{lane: &lane{in: in, lost: true}, state: stateOver}
	first := in.Settle(t.Context(), []pluginapi.Verdict{{Handle: lost, Kind: core.VerdictRequeue}})
	in.Settle(t.Context(), []pluginapi.Verdict{{Handle: 1, Kind: core.VerdictAck}})
	if first[0].Status != pluginapi.ResultStale {
		t.Errorf("the first result became %v", first[0].Status)
	}
}
