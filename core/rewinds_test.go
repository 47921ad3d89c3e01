// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
)

// Where a source rewinds, the end of a hold takes the scope back as a requeue does.
func TestExplainTimeoutsThatRewind(t *testing.T) {
	for _, tt := range []struct {
		name      string
		unsettled core.Unsettled
		hold      time.Duration
		source    string
		leave     string
	}{
		{"timeout", core.UnsettledOnTimeout, 10 * time.Second, "a requeue, and the end of a hold, takes its scope back to it", "later ones pass it, until its scope goes back to it"},
		{"none", core.UnsettledOnDisconnect, 0, "a requeue takes its scope back to it", "later ones pass it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := core.Capabilities{
				Ack: core.AckSingle, Requeue: core.RequeueNow, Unsettled: tt.unsettled, MaxHold: tt.hold,
				Durable: true, Order: core.OrderPerScope, Rewinds: true,
			}
			table := core.Explain(core.Policy{}, []core.Capabilities{c}, core.Route{}, core.Route{}, core.Declared{})
			if got := table.Profiles[0].Source; !strings.Contains(got, tt.source) {
				t.Errorf("the source is %q, want %q", got, tt.source)
			}
			for _, r := range table.Profiles[0].Rows {
				if r.Outcome == "leave" && r.Order != tt.leave {
					t.Errorf("leave: %q, want %q", r.Order, tt.leave)
				}
			}
		})
	}
}
