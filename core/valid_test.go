// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
)

func TestCapabilitiesValid(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name  string
		c     core.Capabilities
		field string
	}{
		{"nothing at all", core.Capabilities{}, ""},
		{"an address, an order and durability without acks", core.Capabilities{Address: "x", Durable: true, Order: core.OrderTotal}, ""},
		{"everything", core.Capabilities{Ack: core.AckSingle, Requeue: core.RequeueDelayed, MaxDelay: s, MaxHold: s, Extend: true, Reject: core.RejectDeadLetters, Counts: core.CountNative, Unsettled: core.UnsettledOnTimeout}, ""},
		{"cumulative with a lease that counts", core.Capabilities{Ack: core.AckCumulative, MaxHold: s, Extend: true, Counts: core.CountNative, Unsettled: core.UnsettledOnTimeout}, ""},
		{"requeue without acks", core.Capabilities{Requeue: core.RequeueNow}, "Requeue"},
		{"reject without acks", core.Capabilities{Reject: core.RejectDrops}, "Reject"},
		{"a count without acks", core.Capabilities{Counts: core.CountNative}, "Counts"},
		{"extend without acks", core.Capabilities{Extend: true, MaxHold: s}, "Extend"},
		{"a hold without acks", core.Capabilities{MaxHold: s}, "MaxHold"},
		{"a return without acks", core.Capabilities{Unsettled: core.UnsettledOnResume}, "Unsettled"},
		{"cumulative requeue", core.Capabilities{Ack: core.AckCumulative, Requeue: core.RequeueNow}, "Requeue"},
		{"cumulative reject", core.Capabilities{Ack: core.AckCumulative, Reject: core.RejectDrops}, "Reject"},
		{"on timeout without one", core.Capabilities{Ack: core.AckSingle, Unsettled: core.UnsettledOnTimeout}, "MaxHold"},
		{"extend without a hold", core.Capabilities{Ack: core.AckSingle, Extend: true}, "Extend"},
		{"MaxDelay without a delay", core.Capabilities{Ack: core.AckSingle, Requeue: core.RequeueNow, MaxDelay: s}, "MaxDelay"},
		{"a count in memory", core.Capabilities{Ack: core.AckSingle, Counts: core.CountNative, Recounts: true}, ""},
		{"no count in memory", core.Capabilities{Ack: core.AckSingle, Recounts: true}, "Recounts"},
		{"a requeue that rewinds", core.Capabilities{Ack: core.AckSingle, Requeue: core.RequeueNow, Order: core.OrderPerScope, Rewinds: true}, ""},
		{"a delayed one, in order as a whole", core.Capabilities{Ack: core.AckSingle, Requeue: core.RequeueDelayed, Order: core.OrderTotal, Rewinds: true}, ""},
		{"a rewind without a requeue", core.Capabilities{Ack: core.AckSingle, Order: core.OrderPerScope, Rewinds: true}, "Rewinds"},
		{"a rewind of no order", core.Capabilities{Ack: core.AckSingle, Requeue: core.RequeueNow, Rewinds: true}, "Rewinds"},
		{"negative delay", core.Capabilities{Ack: core.AckSingle, Requeue: core.RequeueDelayed, MaxDelay: -s}, "MaxDelay"},
		{"negative hold", core.Capabilities{Ack: core.AckSingle, MaxHold: -s}, "MaxHold"},
		{"an unknown ack mode", core.Capabilities{Ack: 3}, "Ack"},
		{"an unknown requeue mode", core.Capabilities{Ack: core.AckSingle, Requeue: 3}, "Requeue"},
		{"an unknown reject mode", core.Capabilities{Ack: core.AckSingle, Reject: 3}, "Reject"},
		{"an unknown count mode", core.Capabilities{Ack: core.AckSingle, Counts: 2}, "Counts"},
		{"an unknown unsettled", core.Capabilities{Ack: core.AckSingle, Unsettled: 4}, "Unsettled"},
		{"an unknown order", core.Capabilities{Ack: core.AckSingle, Order: 3}, "Order"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.c.Valid()
			if tt.field == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var got *core.CapabilityError
			if !errors.As(err, &got) {
				t.Fatalf("got %v, want a *CapabilityError", err)
			}
			if got.Field != tt.field || got.Fix == "" || !strings.Contains(err.Error(), tt.field) || !strings.HasSuffix(err.Error(), got.Fix) {
				t.Errorf("got %q about %s, want one about %s that ends with the fix", err, got.Field, tt.field)
			}
		})
	}
}

// The rules leave the number of sets that the walk over every case takes.
func TestValidSets(t *testing.T) {
	withDelay, without := 0, 0
	for _, c := range validSets() {
		if c.MaxDelay > 0 {
			withDelay++
		} else {
			without++
		}
	}
	// Without limits on delays: 1 without acks, 22 cumulative, 198 single.
	if without != 221 || withDelay != 66 {
		t.Errorf("%d valid sets and %d with a limited delay, want 221 and 66", without, withDelay)
	}
}
