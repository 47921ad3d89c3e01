// SPDX-License-Identifier: Apache-2.0

package conform

import "github.com/longshore-go/longshore/core"

func releaseCases() []Case {
	return []Case{{
		ID: "settle/release", Section: sectionVerdicts,
		Claim:   "RELEASE tells the source nothing: the message neither comes back while the connection lasts nor is it settled.",
		Applies: reads, Needs: needs(feeds, seesUnsettled), Run: settleRelease,
	}}
}

func settleRelease(t *Trial) {
	p, s := t.reading()
	ms := t.headed(6)
	t.Put(p, ms)
	released := s.done(core.VerdictRelease, s.first(Keys(ms))...)
	var stays []string
	for _, d := range released {
		if d.Caps.Unsettled != core.UnsettledOnTimeout {
			stays = append(stays, d.Key)
		}
	}
	s.absent(stays, "they were released, and their connection has not ended")
	s.End()
	p.Close()

	_, s = t.reading()
	var back, lost []*Delivery
	for _, d := range released {
		switch {
		case !returnsAtAll(d.Caps):
			lost = append(lost, d)
		case d.Caps.Unsettled != core.UnsettledOnTimeout || t.outlasts(d.Caps):
			back = append(back, d)
		}
	}
	again := s.again(back, keysOf(lost), leftReason)
	s.renewed(back, again, false)
	s.absent(keysOf(lost), leftReason)
	s.leave()
}
