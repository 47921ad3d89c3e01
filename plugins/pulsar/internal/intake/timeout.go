// SPDX-License-Identifier: Apache-2.0

package intake

import "time"

// idle is how long Receive waits where nothing is to become overdue.
const idle = time.Hour

// untilOverdue is how long it takes until a delivery is overdue, or a nack that waits.
func (in *Intake) untilOverdue() time.Duration {
	in.mu.Lock()
	defer in.mu.Unlock()
	next := idle
	if e := in.hands.first; e != nil {
		next = min(next, time.Until(e.since.Add(in.timeout)))
	}
	if len(in.patient) > 0 {
		next = min(next, time.Until(in.patient[0].due))
	}
	return max(next, 0)
}

// overdue ends deliveries that the host has had for the ack timeout: they are void and
// come again, and those that it has let go of come again as well (S-PUL-22, S-PUL-33).
// One that is held does so when its wait is over, which is shorter. in.mu is held.
func (in *Intake) overdue(now time.Time) {
	for e := in.hands.first; e != nil && now.Sub(e.since) >= in.timeout; e = in.hands.first {
		if e.state == stateHanded {
			in.returns = append(in.returns, e)
		}
		e.lane.alert(now)
		in.giveBack(e, now)
	}
}
