// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"bytes"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
)

// cloned is what Finished gets of a delivery whose frame is given back before.
type cloned struct {
	message            core.Message
	scope              string
	identity, position []byte
}

// keepMessage clones the message where the plan is one of those that Finished
// gets it with. The frame is still borrowed.
func (s *settlement) keepMessage() {
	o := &s.l.o
	if o.Finished == nil || o.Keep == nil || !o.Keep(&s.said, &s.plan) {
		return
	}
	s.clone = &cloned{
		message: s.d.Message.Clone(), scope: strings.Clone(s.d.Scope),
		identity: bytes.Clone(s.d.Identity), position: bytes.Clone(s.d.Position),
	}
}

// tell calls Finished.
func (s *settlement) tell(k Result, lost bool) {
	f := Finished{
		Delivery: s.d,
		Said:     s.said,
		Over:     !core.Admit(&s.l.o.Policy, &s.c),
		Result:   k,
		Lost:     lost,
		Took:     time.Since(s.d.Received),
	}
	d := &f.Delivery
	d.Message, d.Scope, d.Identity, d.Position, d.Undecodable, d.Value = core.Message{}, "", nil, nil, nil, nil
	if m := s.clone; m != nil {
		d.Message, d.Scope, d.Identity, d.Position = m.message, m.scope, m.identity, m.position
	}
	f.Said.Publishes, f.Said.Failed = nil, nil
	if s.decided {
		f.Plan = &s.plan
	}
	s.l.o.Finished(&f)
}
