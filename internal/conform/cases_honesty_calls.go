// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"math"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

func honestyCallCases() []Case {
	return []Case{
		{
			ID: "honesty/seek", Section: sectionSeek,
			Claim: "A seek that Describe does not announce is answered with a fault, and the subscription goes on where it was.",
			Applies: applies(reads, func(a *About) string {
				if a.Describe.GetSeeks() {
					return "seeks are served"
				}
				return ""
			}),
			Needs: feeds, Run: honestySeek,
		},
		{
			ID: "honesty/request", Section: sectionCalls,
			Claim: "A Request that Describe does not announce is answered UNSUPPORTED.",
			Applies: func(a *About) string {
				if a.Describe.GetRequests() {
					return "requests are served"
				}
				return ""
			},
			Run: honestyRequest,
		},
		{
			ID: "honesty/deliver-after", Section: sectionPublishing,
			Claim:   "A message with a deliver_after that the destination cannot carry is REFUSED and not sent.",
			Applies: writes, Needs: collects, Run: honestyDeliverAfter,
		},
	}
}

// honestySeek seeks everywhere, with a delivery unsettled.
func honestySeek(t *Trial) {
	_, s := t.reading()
	d := s.feedTake(1)[0]
	for i, seek := range []*transportpb.Seek{
		{Kind: transportpb.PositionKind_POSITION_KIND_BEGINNING},
		{Kind: transportpb.PositionKind_POSITION_KIND_END},
		{Kind: transportpb.PositionKind_POSITION_KIND_TIME, Time: time.Now().UnixNano()},
		{Kind: transportpb.PositionKind_POSITION_KIND_EXACT, Value: []byte("somewhere")},
	} {
		s.request(&frame.SubscribeRequest{Seek: seek})
		if !s.until(func() bool { return len(s.soughts) > i || s.over }) {
			t.Fatalf("a seek that is not announced was not answered within %v", t.Subject.Wait)
		}
		s.mu.Lock()
		over, err := s.over && len(s.soughts) <= i, s.err
		var code core.FaultCode
		if !over {
			code = core.FaultCode(s.soughts[i].GetFault().GetCode())
		}
		s.mu.Unlock()
		switch {
		case over:
			t.Fatalf("a seek that is not announced ended the stream in place of being answered with a fault: %v", err)
		case code == core.FaultUnspecified:
			t.Errorf("a seek to %v was answered without a fault though Describe does not say that seeks are served", seek.GetKind())
		case code != core.FaultUnsupported:
			t.Notef("a seek that is not announced was answered %v, not UNSUPPORTED", code)
		}
	}
	if s.voided(d) && !hasHold(d.Caps) {
		t.Errorf("delivery %d became void by a seek that was refused: the position is as it was", d.ID)
	}
	s.expect(d, frame.VerdictRun{Kind: ending(d.Caps)}, frame.SettleDone)
	s.nextComes("a seek was refused")
	s.leave()
}

func honestyRequest(t *Trial) {
	p := t.Connected()
	name := t.Destination()
	ctx, cancel := t.limited()
	defer cancel()
	_, err := p.Link().Request(ctx, &transportpb.RequestRequest{
		Outgoing: &transportpb.Outgoing{
			Id: 1, Name: name, Purpose: transportpb.Purpose_PURPOSE_APPLICATION,
			Payload: t.Messages(name, 1, 0)[0].Payload, Options: t.Send,
		},
		Timeout: int64(t.Subject.Wait / 2),
	})
	switch f := link.AsFault(err); {
	case err == nil:
		t.Errorf("Request was answered with a reply though Describe does not say that requests are served")
	case tooLong(ctx.Err()):
		t.Errorf("Request, which is not announced, was not answered within %v", t.Subject.Wait)
	case f.Code != core.FaultUnsupported:
		t.Errorf("Request, which is not announced, was answered %v in place of UNSUPPORTED: %v", f.Code, f)
	}
	p.Close()
}

// honestyDeliverAfter publishes with delays at and beyond the limit, then one
// message without: that one alone arrives.
func honestyDeliverAfter(t *Trial) {
	p := t.Connected()
	c := t.Collect(p)
	delays := []time.Duration{time.Millisecond, time.Second, math.MaxInt64}
	if limit := t.About.Publishing.MaxDelay; limit > 0 {
		delays = []time.Duration{limit, min(limit, math.MaxInt64-1) + 1, math.MaxInt64}
	}
	out := Outgoing(t.Messages(t.Destination(), len(delays)+1, 0)...)
	var keys []string
	for i, d := range delays {
		out[i].DeliverAfter = d
		keys = append(keys, keyOf(out[i].Message.Payload))
	}
	last := keyOf(out[len(delays)].Message.Payload)
	all := p.Publisher().Send(out...)
	for i, d := range delays {
		switch r := all[i].Receipt; {
		case r.Status != frame.ReceiptRefused:
			t.Errorf("a message with a deliver_after of %v was not REFUSED but %s: the destination's max_delay is %v (0: none)", d, receiptWord(r.Status), t.About.Publishing.MaxDelay)
		case r.Fault == nil:
			t.Errorf("a message with a deliver_after of %v was REFUSED without a fault that says why", d)
		case r.Fault.Code != core.FaultUnsupported:
			t.Notef("a deliver_after that cannot be carried is refused as %v", r.Fault.Code)
		}
	}
	if r := all[len(delays)].Receipt; r.Status != frame.ReceiptConfirmed {
		t.Fatalf("a message behind them was not confirmed but %s: %v", receiptWord(r.Status), r.Fault)
	}
	c.Await([]string{last})
	for _, a := range c.Arrivals(0) {
		for i, k := range keys {
			if a.Key == k && all[i].Receipt.Status == frame.ReceiptRefused {
				t.Errorf("a message with a deliver_after of %v was REFUSED and arrived", delays[i])
			}
		}
	}
	c.Stop()
	p.Close()
}
