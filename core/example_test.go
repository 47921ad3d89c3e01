// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"fmt"

	"github.com/longshore-go/longshore/core"
)

// A retry below the cap on a source that settles each delivery and does not
// count: the copy is published, and when its receipt is there the original is
// acked. The same plan says what is done where the publish fails.
func ExampleDecide() {
	policy := core.Policy{MaxAttempts: 3}
	c := core.Case{
		Source:  core.Capabilities{Ack: core.AckSingle, Requeue: core.RequeueNow, Address: "orders", Unsettled: core.UnsettledOnDisconnect},
		Retry:   core.Route{To: core.Destination{Name: "orders"}, State: core.RouteOpen},
		Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CauseError},
	}
	var plan core.Plan
	core.Decide(&policy, &c, &plan)
	fmt.Println(plan.String())

	path := plan.Path(func(s core.Step) core.Result {
		if s.Do == core.ActPublish {
			return core.ResultTransient
		}
		return core.ResultDone
	}, nil)
	fmt.Println(path)
	fmt.Println("host dies at the end:", core.Fate(path, len(path), core.PartyHost, &c))
	// Output:
	// WARN(L-ERR); PUBLISH(retry,1); ACK
	// WARN(L-ERR); PUBLISH(retry,1)=TRANSIENT; WARN(L-COPY); HOLD(1s); REQUEUE
	// host dies at the end: kept
}
