// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/rows"
)

// The ack of a cumulative source that failed is made good by the next one, so a
// copy that is to follow it leaves all the same: a possible double, and said.
func TestCopiesLeaveAfterAFailedCumulativeAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		acks := 0
		b := newBench(t, rows.Kinds()["K"], func(d *Delivery) Said {
			if string(d.Message.Payload) == "1" && d.Number < 2 {
				return Said{Outcome: core.Outcome{Kind: core.OutcomeRetryAfter, After: time.Minute}}
			}
			return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
		}, func(s *setup) {
			s.plugin = func(p *plugin) {
				p.answer = func(frame.VerdictRun) (frame.SettleStatus, *core.Fault) {
					if acks++; acks == 1 {
						return frame.SettleFailed, &core.Fault{Code: core.FaultUnavailable, Message: "away", Transient: true}
					}
					return frame.SettleDone, nil
				}
			}
		})
		synctest.Wait()
		b.p.deliver(message("1"), message("2"))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := len(b.p.outgoing()); n != 1 {
			t.Errorf("%d copies left, want 1", n)
		}
		if n := len(b.logs.lines("L-DBL")); n != 1 {
			t.Errorf("%d lines about the double, want 1", n)
		}
	})
}
