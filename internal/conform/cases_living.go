// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

func livingCases() []Case {
	return []Case{{
		ID: "unsettled/living", Section: sectionCapabilities,
		Claim: "What a living process has unsettled nobody else is given, unless the process says that it is void.",
		Applies: applies(reads, with("an ack and deliveries that come again", func(c core.Capabilities) bool {
			return acksSingle(c) && returnsAtAll(c)
		})),
		Needs: feeds, Run: unsettledLiving,
	}}
}

// secondLimit is how long a second process may take to connect: a source that
// one process has for itself refuses it, or lets it wait. It is stretched.
const secondLimit = 2 * time.Second

// unsettledLiving lets a second process read while the first one holds
// deliveries.
func unsettledLiving(t *Trial) {
	const n = 6
	_, s := t.reading()
	begun := time.Now()
	ds := t.of(s.feedTake(n), "an ack and deliveries that come again", func(c core.Capabilities) bool {
		return acksSingle(c) && returnsAtAll(c)
	})
	second, other := t.second()
	look := t.Subject.Quiet
	for _, d := range ds {
		if left := d.Caps.MaxHold/2 - time.Since(begun); hasHold(d.Caps) {
			look = min(look, left)
		}
	}
	if look <= 0 {
		t.Skipf("max_hold is over before a second process reads")
	}
	taken := map[string]bool{}
	more := other.Within(look)
	for _, d := range more {
		taken[d.Key] = true
	}
	told := 0
	for _, d := range ds {
		if !taken[d.Key] {
			s.expect(d, frame.VerdictRun{Kind: core.VerdictAck}, frame.SettleDone)
			continue
		}
		if !s.await(t.Subject.Quiet, func() bool { return d.void }) {
			t.Errorf("message %s was delivered to a second process while the first one had it unsettled and lived, and was not said to be void there", d.Key)
			continue
		}
		told++
	}
	if told > 0 {
		t.Notef("a second process was given %d of %d deliveries that the first one had, and the first one told that they are void: "+
			"two services with these settings take messages from each other", told, n)
	}
	other.letGo(more...)
	other.Barrier()
	other.HalfClose()
	second.Close()
	s.leave()
}

// second starts another process of the plugin on the same source and lets it
// read. The case does not concern sources that have room for one process only.
func (t *Trial) second() (*Process, *Sub) {
	p := t.Configured()
	p.Inspect(t.Usage())
	ctx, cancel := context.WithTimeout(t.Ctx, min(stretched(secondLimit), t.Subject.Wait))
	defer cancel()
	if _, err := p.link.Connect(ctx, &transportpb.ConnectRequest{}); err != nil {
		t.Notef("%v", err)
		t.Exemptf("a second process does not connect meanwhile")
	}
	s, err := p.open(t.registration())
	if err != nil {
		t.Notef("%v", err)
		t.Exemptf("a second process does not subscribe meanwhile")
	}
	s.Credit(windowMessages, windowBytes)
	return p, s
}
