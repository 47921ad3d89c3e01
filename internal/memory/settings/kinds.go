// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"time"

	"github.com/longshore-go/longshore/core"
)

// The kinds of reference 2.1; change fields of what they return for the
// conditions of a row. All deliver in order.

// KindA settles, gives back at once and does not count.
func KindA() core.Capabilities {
	return core.Capabilities{
		Ack: core.AckSingle, Requeue: core.RequeueNow, Reject: core.RejectDrops,
		Address: Own, Unsettled: core.UnsettledOnDisconnect, Durable: true, Order: core.OrderTotal,
	}
}

// KindB counts and delays, without a reject and an address of its own.
func KindB() core.Capabilities {
	return core.Capabilities{
		Ack: core.AckSingle, Requeue: core.RequeueDelayed, Counts: core.CountNative,
		Unsettled: core.UnsettledOnDisconnect, Durable: true,
	}
}

// KindC is KindA that counts.
func KindC() core.Capabilities {
	c := KindA()
	c.Counts = core.CountNative
	return c
}

// KindD is KindA with a native delay.
func KindD() core.Capabilities {
	c := KindA()
	c.Requeue = core.RequeueDelayed
	return c
}

// KindK is a log with offsets.
func KindK() core.Capabilities {
	return core.Capabilities{
		Ack: core.AckCumulative, Unsettled: core.UnsettledOnDisconnect, Durable: true, Order: core.OrderTotal,
	}
}

// KindM can only ack; what is unsettled comes back when its session resumes.
func KindM() core.Capabilities {
	return core.Capabilities{
		Ack: core.AckSingle, Address: Own, Unsettled: core.UnsettledOnResume, Durable: true, Order: core.OrderTotal,
	}
}

// KindT is a lease of 30 s.
func KindT() core.Capabilities {
	return core.Capabilities{
		Ack: core.AckSingle, MaxHold: 30 * time.Second, Address: Own,
		Unsettled: core.UnsettledOnTimeout, Durable: true, Order: core.OrderTotal,
	}
}

// KindU settles nothing.
func KindU() core.Capabilities {
	return core.Capabilities{Address: Own, Order: core.OrderTotal}
}
