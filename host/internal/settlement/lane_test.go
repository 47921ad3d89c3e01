// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
)

func TestLaneAcks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, acks)
		synctest.Wait()
		if got, want := b.p.credit.Messages, uint64(creditMessages); got != want {
			t.Errorf("credit of %d messages, want %d", got, want)
		}
		b.p.deliver(message("1"), message("2"), message("3"))
		synctest.Wait()
		want := []core.VerdictKind{core.VerdictAck, core.VerdictAck, core.VerdictAck}
		if diff := cmp.Diff(want, b.p.kinds()); diff != "" {
			t.Error(diff)
		}
		left, lost, missing := b.stop(t.Context())
		if !left.Empty() || len(lost) > 0 || missing > 0 {
			t.Errorf("stop left %+v, %v, %d", left, lost, missing)
		}
		if got := b.lane.Counters(); got.Acked != 3 || got.InWork != 0 {
			t.Errorf("counters %+v", got)
		}
	})
}

func TestLaneRetriesByCopy(t *testing.T) { // S-GEN-04
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, says(retry()), func(s *setup) { s.o.Policy.MaxAttempts = 3 })
		synctest.Wait()
		b.p.deliver(message("x", "X-Tenant", "a", "x-tenant", "b"))
		synctest.Wait()
		if got := b.observed(); len(got) != 1 || got[0].String() != "PUBLISH(own,1); ACK" {
			t.Errorf("plans %v", got)
		}
	})
}
