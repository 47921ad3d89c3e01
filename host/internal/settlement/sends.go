// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// sends are the publishes that one outcome depends on, from the first that is
// handed over to the last receipt. Receipts that are late find its memory, and
// no wait of its settlement.
type sends struct {
	s     *settlement
	token uint64 // of the wait

	mu      sync.Mutex // of the receipts
	missing int
	all     []oneSend
	one     [1]oneSend // all of them, nearly always
}

// oneSend is one of them.
type oneSend struct {
	box      *Outbox
	p        publish
	answered bool
	receipt  frame.Receipt
}

// newSends returns the publishes of what s has said.
func newSends(s *settlement) *sends {
	d := &sends{s: s, missing: len(s.said.Publishes)}
	if d.all = d.one[:]; d.missing > 1 {
		d.all = make([]oneSend, d.missing)
	}
	for i := range d.all {
		o, p := &s.said.Publishes[i], &d.all[i].p
		p.to, p.token = d, uint64(i)
		p.out = frame.Outgoing{
			Message: o.Message, Purpose: o.Purpose, Options: o.Options,
			DedupID: o.DedupID, DeliverAfter: o.DeliverAfter,
		}
		p.out.Message.Name = o.To.Name
		if o.WithCarry {
			p.out.Carry = s.f.item().Carry
		}
		d.all[i].box = s.l.o.Outboxes(o.To.Endpoint)
	}
	return d
}

// check looks at all of them before any leaves. It reports false, with the
// receipt of each that cannot leave, where there is one.
func (d *sends) check() bool {
	ok := true
	for i := range d.all {
		one := &d.all[i]
		var f *core.Fault
		if one.box == nil {
			f = &core.Fault{
				Code:    core.FaultNotFound,
				Message: "endpoint " + d.s.said.Publishes[i].To.Endpoint + " is not attached",
			}
		} else if f = one.p.check(); f == nil {
			f = one.box.unready()
		}
		if f != nil {
			ok, one.answered = false, true
			one.receipt = frame.Receipt{Status: frame.ReceiptRefused, Fault: f}
		}
	}
	return ok
}

// hand gives them to their outboxes, in order. Once the last one is handed over
// d's settlement may be over.
func (d *sends) hand() {
	for i := range d.all {
		d.all[i].box.hand(&d.all[i].p)
	}
}

// receive takes the receipt of one of them.
func (d *sends) receive(i uint64, r frame.Receipt) {
	d.mu.Lock()
	last := false
	if one := &d.all[i]; !one.answered {
		one.answered, one.receipt = true, r
		d.missing--
		last = d.missing == 0
	}
	d.mu.Unlock()
	if last && d.s.claim(d.token) {
		d.s.sent(d)
	}
}

// giveUp takes back what can be taken back. What has no receipt gets the one of
// a publish that came too late. It reports whether any of those may have been
// sent.
func (d *sends) giveUp() (maybe bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.all {
		one := &d.all[i]
		if one.answered {
			continue
		}
		unsent := one.box.take(&one.p)
		one.answered, one.receipt = true, overdueReceipt(unsent)
		maybe = maybe || !unsent
	}
	d.missing = 0
	return maybe
}

// send hands over what the outcome depends on, all of it or nothing. The frame
// stays borrowed until the receipts are in.
func (s *settlement) send() {
	s.leave()
	d := newSends(s)
	if !d.check() {
		s.sent(d)
		return
	}
	s.wait.mu.Lock()
	s.wait.sends = d
	d.token = s.start(waitSends, time.Now().Add(s.l.o.PublishLimit), nil, nil)
	s.wait.mu.Unlock()
	d.hand()
}

// sent decides with the receipts. One that says neither counts as confirmed
// where nothing can be acked: a retry could only double. Without the plugin's own
// receipt a transport in this process may still read what it was given.
func (s *settlement) sent(d *sends) {
	failed := -1
	for i := range d.all {
		r := &d.all[i].receipt
		if !d.all[i].answered { // another one could not leave, so it did not
			continue
		}
		if r.ID == 0 && r.Status != frame.ReceiptRefused {
			s.forfeit()
		}
		switch {
		case r.Status == frame.ReceiptConfirmed:
		case r.Status != frame.ReceiptRefused && s.c.Source.Ack == core.AckNone:
			s.l.unsure.hit("publish has no receipt that says whether it arrived, counted as sent",
				"generation", s.generation, "delivery", s.id, "attempt", s.d.Number,
				"destination", s.said.Publishes[i].To.String(), "error", faultText(r.Fault))
		case failed < 0:
			failed = i
		}
	}
	if failed >= 0 {
		s.unconfirmed(publishError(&s.said.Publishes[failed], d.all[failed].box, d.all[failed].receipt))
	}
	s.decide()
}

// unconfirmed takes over what is said where a publish was not confirmed.
func (s *settlement) unconfirmed(err *PublishError) {
	said := Said{Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CauseError}, Err: err}
	if err.Purpose == uint8(transportpb.Purpose_PURPOSE_REPLY) {
		said.Outcome.Cause = core.CauseReplyFailed
	}
	if s.said.Failed != nil {
		said = s.said.Failed(&s.d, err)
	}
	said.Publishes, said.Failed = nil, nil
	s.said = said
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
	Purpose   uint8       // transportpb.Purpose
	Type      string      // Publish.Type
	MaybeSent bool        // the receipt says neither
	Fault     *core.Fault // nil = no reason given
	Down      bool        // its endpoint was down: it is ErrDown
}

// Error names the destination and the reason.
func (e *PublishError) Error() string {
	what := "not sent"
	if e.MaybeSent {
		what = "perhaps sent"
	}
	return fmt.Sprintf("publish to %s: %s: %s", e.To, what, e.Text())
}

// errNoReason stands for a reason that the plugin did not give.
var errNoReason = errors.New("the transport gave no reason")

// Reason returns the fault, or what stands in its place.
func (e *PublishError) Reason() error {
	switch {
	case e.Down:
		return ErrDown
	case e.Fault != nil:
		return e.Fault
	default:
		return errNoReason
	}
}

// Text is the reason without what a plugin says of the destination itself: that it
// could not publish to that name, which stands before the text already.
func (e *PublishError) Text() string {
	text := e.Reason().Error()
	for _, name := range []string{strconv.Quote(e.To.Name), e.To.Name} {
		if rest, ok := strings.CutPrefix(text, "publish to "+name+": "); ok {
			return rest
		}
	}
	return text
}

// Unwrap returns the reason, and the fault.
func (e *PublishError) Unwrap() []error {
	errs := []error{e.Reason()}
	if e.Down && e.Fault != nil {
		errs = append(errs, e.Fault)
	}
	return errs
}

func publishError(p *Publish, box *Outbox, r frame.Receipt) *PublishError {
	return &PublishError{
		To: p.To, Purpose: p.Purpose, Type: p.Type,
		MaybeSent: r.Status != frame.ReceiptRefused, Fault: r.Fault, Down: box != nil && box.Down(r),
	}
}
