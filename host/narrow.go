// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"

	"github.com/longshore-go/longshore/core"
)

// checkNarrower refuses what a subscription says when it is opened, where it
// goes beyond what it said at Inspect: the checks of the start, and the tables
// that people read, stand on that.
func (s *subscribed) checkNarrower(started []core.Capabilities) []Finding {
	for i := range started {
		field := ""
		for j := range s.profiles {
			if f := started[i].Wider(s.profiles[j]); f == "" || field == "" {
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
