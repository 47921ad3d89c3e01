// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// forward hands over the publish that the outcome depends on. The frame stays
// borrowed until its receipt.
func (s *settlement) forward() {
	s.leave()
	f := s.said.Forward
	box := s.l.o.Outboxes(f.To.Endpoint)
	if box == nil {
		s.forwarded(frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{
			Code: core.FaultNotFound, Message: "endpoint " + f.To.Endpoint + " is not attached",
		}})
		return
	}
	p := &publish{to: s, out: frame.Outgoing{
		Message: f.Message, Purpose: f.Purpose, Carry: f.Carry, Options: f.Options,
	}}
	p.out.Message.Name = f.To.Name
	p.token = s.offer(waitForward, time.Now().Add(s.l.o.PublishLimit), box, p)
	box.hand(p)
}

// forwarded decides with the receipt of the handler's own publish. A receipt
// that says neither counts as confirmed where nothing can be acked: a retry
// could only double. Without the plugin's own receipt a transport in this process
// may still read what it was given.
func (s *settlement) forwarded(r frame.Receipt) {
	if r.ID == 0 && r.Status != frame.ReceiptRefused {
		s.forfeit()
	}
	confirmed := r.Status == frame.ReceiptConfirmed ||
		r.Status != frame.ReceiptRefused && s.c.Source.Ack == core.AckNone
	if confirmed && r.Status != frame.ReceiptConfirmed {
		s.l.unsure.hit("publish has no receipt that says whether it arrived, counted as sent",
			"generation", s.generation, "delivery", s.id, "attempt", s.d.Number,
			"destination", s.said.Forward.To.String(), "error", faultText(r.Fault))
	}
	if !confirmed {
		f := s.said.Forward
		said := f.Failed(&s.d, publishError(f.To, r))
		said.Forward = nil
		s.said = said
	}
	s.decide()
}

// forfeit keeps the frame from being used again.
func (s *settlement) forfeit() {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	if s.f != nil {
		s.f.forfeit = true
	}
}

// PublishError says that a publish was not confirmed.
type PublishError struct {
	To        core.Destination
	MaybeSent bool        // the receipt says neither
	Fault     *core.Fault // nil = no reason given
}

// Error names the destination and the reason.
func (e *PublishError) Error() string {
	what := "not sent"
	if e.MaybeSent {
		what = "perhaps sent"
	}
	if e.Fault == nil {
		return fmt.Sprintf("publish to %s: %s", e.To, what)
	}
	return fmt.Sprintf("publish to %s: %s: %v", e.To, what, e.Fault)
}

// Unwrap returns the fault.
func (e *PublishError) Unwrap() error {
	if e.Fault == nil {
		return nil
	}
	return e.Fault
}

func publishError(to core.Destination, r frame.Receipt) error {
	return &PublishError{To: to, MaybeSent: r.Status != frame.ReceiptRefused, Fault: r.Fault}
}
