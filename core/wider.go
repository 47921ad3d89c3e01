// SPDX-License-Identifier: Apache-2.0

package core

import "time"

// Wider names the first field, as it is spelt here, in which c can do more than
// said, "" when none does. Two modes that do different things (single and
// cumulative acks, the kinds of reject, what becomes of unsettled deliveries)
// do not contain each other.
func (c Capabilities) Wider(said Capabilities) string {
	switch {
	case c.Ack != AckNone && c.Ack != said.Ack:
		return "Ack"
	case c.Requeue > said.Requeue:
		return "Requeue"
	case c.Requeue == RequeueDelayed && beyond(c.MaxDelay, said.MaxDelay):
		return "MaxDelay"
	case c.Ack != AckNone && beyond(c.MaxHold, said.MaxHold): // without acks nothing is held
		return "MaxHold"
	case c.Extend && !said.Extend && said.MaxHold != 0:
		return "Extend"
	case c.Reject != RejectNone && c.Reject != said.Reject:
		return "Reject"
	case c.Counts > said.Counts:
		return "Counts"
	case c.Counts != CountNone && !c.Recounts && said.Recounts:
		return "Recounts"
	case c.Address != "" && c.Address != said.Address:
		return "Address"
	case c.Unsettled != UnsettledLost && c.Unsettled != said.Unsettled:
		return "Unsettled"
	case c.Durable && !said.Durable:
		return "Durable"
	case c.Order > said.Order:
		return "Order"
	case c.Rewinds && !said.Rewinds:
		return "Rewinds"
	}
	return ""
}

// beyond reports whether a limit allows more than another; 0 is no limit.
func beyond(limit, than time.Duration) bool { return than != 0 && (limit == 0 || limit > than) }
