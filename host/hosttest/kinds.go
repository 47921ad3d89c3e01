// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// Own as the Address of a source means that publishing to the subscription's own
// name returns to it, as with a queue.
const Own = settings.Own

// Rest stands for all names that [Broker.Source] and [Broker.Destination] were
// not called for.
const Rest = settings.Rest

// Queue is a work queue: each delivery is acked, requeued at once or rejected,
// what is unsettled comes back when the connection ends, and deliveries are not
// counted, so retries under a cap are copies. It is what a subscription is
// unless something else is asked for.
func Queue() core.Capabilities { return settings.KindA() }

// CountingQueue is a [Queue] that counts deliveries itself: a retry is a requeue
// and the copy that a cap needs elsewhere is not made.
func CountingQueue() core.Capabilities { return settings.KindC() }

// DelayQueue is a [Queue] that can requeue after a delay.
func DelayQueue() core.Capabilities { return settings.KindD() }

// CountingTopic counts and delays like a shared subscription of a topic, but can
// neither reject nor be published to under its own name.
func CountingTopic() core.Capabilities { return settings.KindB() }

// Log is a log that is read by offset: acks are cumulative, nothing can be
// requeued or rejected, and it has no address of its own.
func Log() core.Capabilities { return settings.KindK() }

// Group is a log that keeps the position of a group, as a stream file does: each
// delivery is acked by itself or requeued after any delay, deliveries are counted,
// and what is unsettled comes back when the group reads again. Published to under
// its own name it returns.
func Group() core.Capabilities {
	return core.Capabilities{
		Ack: core.AckSingle, Requeue: core.RequeueDelayed, Counts: core.CountNative, Address: Own,
		Unsettled: core.UnsettledOnResume, Durable: true, Order: core.OrderTotal,
	}
}

// Session can only ack; what is unsettled comes back when the session resumes.
func Session() core.Capabilities { return settings.KindM() }

// Lease gives each delivery for 30 s: what has no ack by then comes back. It has
// nothing else to ask for a retry with.
func Lease() core.Capabilities { return settings.KindT() }

// CountingLease is a [Lease] that is prolonged, counts deliveries, and gives one
// back after any delay that is shorter than it.
func CountingLease() core.Capabilities {
	c := Lease()
	c.Requeue, c.MaxDelay, c.Extend, c.Counts = core.RequeueDelayed, c.MaxHold, true, core.CountNative
	return c
}

// Stream settles nothing: what was delivered is gone, as with a socket or a
// pipe. Retries are copies to its own name.
func Stream() core.Capabilities { return settings.KindU() }

// Stored is a destination that keeps what it confirms and takes any header. It
// is what a destination is unless something else is asked for.
func Stored() core.Publishing {
	return core.Publishing{
		Confirms: core.ConfirmStored, Retains: core.RetainTransport, Headers: core.HeadersNativeBytes, Repeats: true,
	}
}

// Enveloped is a destination that writes headers into the payload, as a pipe or a
// file does, and confirms what it has handed over. Dead letters have none of the
// runtime's headers there unless the service asks for them.
func Enveloped() core.Publishing {
	return core.Publishing{
		Confirms: core.ConfirmHandedOver, Retains: core.RetainTransport, Headers: core.HeadersEnveloped, Repeats: true,
	}
}
