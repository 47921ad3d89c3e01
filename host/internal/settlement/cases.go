// SPDX-License-Identifier: Apache-2.0

package settlement

import "github.com/longshore-go/longshore/core"

// cases are what the deliveries of each profile have in common.
func cases(o *LaneOptions, profiles []core.Capabilities) []core.Case {
	cs := make([]core.Case, len(profiles))
	for i := range profiles {
		c := &cs[i]
		c.Source, c.Retry, c.Dead, c.Journal = profiles[i], o.RetryTo, o.Dead, o.Journal != nil
		if o.RetryFunc != nil && c.Retry.State == core.RouteNone {
			c.Retry.State = core.RouteOpen // until the function says otherwise
		}
	}
	return cs
}

// begins sets the case of a delivery that nothing is known about yet. Most follow
// one of the same kind, which leaves little to write.
func (s *settlement) begins(of *core.Case) {
	c := &s.c
	if s.of != of {
		*c, s.of = *of, of
		return
	}
	c.Attempt, c.Outcome, c.Held, c.Floor = core.Attempt{}, core.Outcome{}, 0, 0
	c.Void, c.Spent, c.Full = core.VoidLive, false, false
}
