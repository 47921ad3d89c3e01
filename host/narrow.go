// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
)

// checkNarrower refuses what a subscription says when it is opened, where it
// goes beyond what it said at Inspect: the checks of the start, and the tables
// that people read, stand on that.
func (s *subscribed) checkNarrower(started []core.Capabilities) []Finding {
	for i := range started {
		field := ""
		for j := range s.profiles {
			if f := wider(&started[i], &s.profiles[j]); f == "" || field == "" {
				field = f
			}
			if field == "" {
				break
			}
		}
		if field == "" {
			continue
		}
		f := s.at()
		f.Message = fmt.Sprintf("the transport opened it with a profile that is wider than what it had said: %s of profile %d", field, i)
		f.Fix = "this is a defect of the transport; report it to its author"
		return []Finding{f}
	}
	return nil
}

// wider names the first field in which c can do more than said, "" when none
// does.
func wider(c, said *core.Capabilities) string {
	switch {
	case c.Ack != core.AckNone && c.Ack != said.Ack:
		return "Ack"
	case c.Requeue > said.Requeue:
		return "Requeue"
	case c.Requeue == core.RequeueDelayed && beyond(c.MaxDelay, said.MaxDelay):
		return "MaxDelay"
	case c.Ack != core.AckNone && beyond(c.MaxHold, said.MaxHold):
		return "MaxHold"
	case c.Extend && !said.Extend && said.MaxHold != 0:
		return "Extend"
	case c.Reject != core.RejectNone && c.Reject != said.Reject:
		return "Reject"
	case c.Counts > said.Counts:
		return "Counts"
	case c.Address != "" && c.Address != said.Address:
		return "Address"
	case c.Unsettled != core.UnsettledLost && c.Unsettled != said.Unsettled:
		return "Unsettled"
	case c.Durable && !said.Durable:
		return "Durable"
	case c.Order > said.Order:
		return "Order"
	}
	return ""
}

// beyond reports whether a limit allows more than another; 0 is no limit.
func beyond(limit, than time.Duration) bool { return than != 0 && (limit == 0 || limit > than) }
