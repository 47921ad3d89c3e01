// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

func TestDeliveriesAndVerdicts(t *testing.T) {
	tr := newQueueTransport(everything())
	b := serve(t, tr).connect()
	tr.queue("q").fill(5, 10)
	st := b.subscribe("q")
	st.credit(10, 1<<20)
	items := st.got(5)
	for i, d := range items {
		if d.ID != uint64(i+1) {
			t.Errorf("delivery %d has id %d", i, d.ID)
		}
	}
	st.settle(
		frame.VerdictRun{First: 1, Count: 2, Kind: core.VerdictAck, WantResult: true},
		frame.VerdictRun{First: 3, Kind: core.VerdictReject, WantResult: true},
		frame.VerdictRun{First: 4, Kind: core.VerdictExtend, Hold: 1000, WantResult: true},
		frame.VerdictRun{First: 5, Kind: core.VerdictRelease, WantResult: true},
	)
	want := map[uint64]frame.SettleStatus{
		1: frame.SettleDone, 2: frame.SettleDone, 3: frame.SettleDone, 4: frame.SettleDone, 5: frame.SettleDone,
	}
	if d := cmp.Diff(want, st.results(5)); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
	if n := tr.queue("q").left(); n != 2 {
		t.Errorf("%d unsettled at the source, want 2: the extended and the released one", n)
	}
	st.finish()
}
