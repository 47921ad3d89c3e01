// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
)

// holdFindings are about deliveries that wait with the host for longer than a
// source leaves them there: it takes them back, again and again, before they are
// handled.
func (s *subscribed) holdFindings(profiles []core.Capabilities) (found []Finding) {
	var hold time.Duration // the shortest that cannot be prolonged; 0 = none
	for i := range profiles {
		if c := &profiles[i]; c.MaxHold > 0 && !settlement.Prolongs(c) && (hold == 0 || c.MaxHold < hold) {
			hold = c.MaxHold
		}
	}
	if hold == 0 {
		return nil
	}
	back := fmt.Sprintf("and the source takes a delivery back after %v", hold)
	if b := s.sub.handled.runs.batch(); b != nil && b.Wait >= hold {
		f := s.at()
		f.Option, f.Message = "HandleBatch", fmt.Sprintf("a batch that does not become full is handled after %v, %s", b.Wait, back)
		f.Fix = "wait for less, or raise the source's limit"
		found = append(found, f)
	}
	if limit := float64(s.rules().limit); limit > 0 {
		w := settlement.CreditFor(&settlement.LaneOptions{
			Batch: s.sub.handled.runs.batch(), Workers: s.rules().workers, Window: s.credit(),
		}, profiles)
		if wait := float64(w.Messages) / limit; wait >= hold.Seconds() {
			f := s.at()
			f.Option, f.Warning = "RateLimit", true
			f.Message = fmt.Sprintf("at %v a second the last of a full window of %d is begun after %v, %s",
				limit, w.Messages, time.Duration(wait*float64(time.Second)).Round(time.Millisecond), back)
			f.Fix = fmt.Sprintf("declare Window with at most %d messages", max(1, int(limit*hold.Seconds()/2)))
			found = append(found, f)
		}
	}
	return found
}
