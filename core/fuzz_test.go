// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
)

// FuzzDecide gives Decide anything, contradictions of a broken plugin
// included: a plan comes out that ends, the same one each time.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 1, 1, 1, 3, 1, 1, 1, 0, 1, 5, 2, 1, 1, 2, 3, 0, 1, 1, 1})
	f.Add([]byte{2, 2, 2, 1, 3, 1, 1, 1, 3, 1, 3, 3, 1, 1, 1, 3, 2, 0, 1, 0, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func(n int) int {
			if len(data) == 0 {
				return 0
			}
			v := int(data[0]) % n
			data = data[1:]
			return v
		}
		long := func() uint64 {
			var b [8]byte
			data = data[copy(b[:], data):]
			return binary.LittleEndian.Uint64(b[:])
		}
		route := func() core.Route {
			return core.Route{
				State: core.RouteState(next(4)), Restarts: next(2) == 1, Own: next(2) == 1,
				Caps: core.Publishing{Confirms: core.Confirm(next(5)), Retains: core.Retention(next(4)), MaxDelay: time.Duration(long()), Dedups: next(2) == 1},
			}
		}
		p := core.Policy{MaxAttempts: uint32(next(5)), DeadLetter: next(2) == 1, RetryTo: next(2) == 1, Backoff: next(2) == 1}
		c := core.Case{
			Source: core.Capabilities{
				Ack: core.AckMode(next(4)), Requeue: core.RequeueMode(next(4)), Reject: core.RejectMode(next(4)),
				Counts: core.CountMode(next(3)), Unsettled: core.Unsettled(next(5)), Extend: next(2) == 1, Durable: next(2) == 1,
				MaxDelay: time.Duration(long()), MaxHold: time.Duration(long()),
			},
			Retry: route(), Dead: route(),
			Attempt: core.Attempt{Native: uint32(next(6)), Copies: long()},
			Outcome: core.Outcome{Kind: core.OutcomeKind(next(9)), Cause: core.Cause(next(7)), After: time.Duration(long())},
			Held:    time.Duration(long()), Floor: time.Duration(long()),
			Void: core.Void(next(4)), Journal: next(2) == 1, Full: next(2) == 1,
		}
		c.Spent, p.Elapsed = next(2) == 1, next(2) == 1
		var plan, again core.Plan
		core.Decide(&p, &c, &plan)
		core.Decide(&p, &c, &again)
		if plan != again {
			t.Fatalf("decided twice: %s and %s", &plan, &again)
		}
		everyPath(&plan, func(path core.Path) {
			for dies := core.PartyNobody; dies <= core.PartyTargetBroker; dies++ {
				if core.Fate(path, len(path)/2, dies, &c) == 0 {
					t.Fatalf("no ending of %s if %s dies", path, dies)
				}
			}
		})
	})
}
