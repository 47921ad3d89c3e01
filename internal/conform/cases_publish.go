// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

func publishCases() []Case {
	both := func(a *About) string {
		if why := a.feeds(); why != "" && a.Subject.Collect == nil {
			return why
		}
		return a.collects()
	}
	kept := func(a *About) string {
		if !a.kept() {
			return "nobody keeps what is published until another process reads it"
		}
		return ""
	}
	all := append(headerCases(), payloadCases()...)
	return append(all,
		Case{
			ID: "publish/receipts", Section: sectionPublishing,
			Claim:   "Each message has exactly one receipt, also those that come in one frame and in many.",
			Applies: writes, Needs: both, Run: publishReceipts,
		},
		Case{
			ID: "publish/order", Section: sectionPublishing,
			Claim:   "Messages published one after the other arrive in that order, where the source has an order.",
			Applies: applies(writes, with("an order", ordered)), Needs: both, Run: publishOrder,
		},
		Case{
			ID: "publish/unread", Section: sectionPublishing,
			Claim:   "A publish never waits for a delivery to be read: messages to an own address are confirmed while the subscription has no credit.",
			Applies: applies(writes, with("an address of its own", hasAddress), returnsHere), Run: publishUnread,
		},
		Case{
			ID: "publish/stalled", Section: sectionPublishing,
			Claim:   "A destination that does not answer holds up no other one.",
			Applies: writes,
			Needs: func(a *About) string {
				if a.Subject.Stalled == "" {
					return "the name of a destination that does not answer"
				}
				return ""
			},
			Run: publishStalled,
		},
		Case{
			ID: "publish/confirms", Section: sectionCapabilities,
			Claim: "A confirmed receipt is worth what Confirms says: what was handed over or stored arrives though the process is killed at once.",
			Applies: applies(writes, func(a *About) string {
				if a.Publishing.Confirms < core.ConfirmHandedOver {
					return "a receipt does not promise more than a queue in the plugin"
				}
				return ""
			}, kept),
			Needs: both, Run: publishConfirms,
		},
		Case{
			ID: "publish/flush", Section: sectionCalls,
			Claim:   "Close flushes what was accepted: every message has arrived or its receipt says that it has not.",
			Applies: applies(writes, kept), Needs: both, Run: publishFlush,
		},
		Case{
			ID: "publish/leash-flush", Section: sectionLeash,
			Claim:   "A plugin whose host is gone still publishes what it has accepted: what was confirmed has arrived.",
			Applies: applies(writes, kept), Needs: both, Run: publishLeashFlush,
		},
		Case{
			ID: "publish/half-close", Section: sectionPublishing,
			Claim:   "Behind the host's half-close the stream ends with OK once the last receipt is sent.",
			Applies: writes, Run: publishHalfClose,
		},
		Case{
			ID: "publish/deliver-after", Section: sectionPublishing,
			Claim: "A message with deliver_after arrives neither before its time nor much later, and later messages pass it.",
			Applies: applies(writes, func(a *About) string {
				if a.Publishing.MaxDelay == 0 {
					return "the destination does not delay"
				}
				return ""
			}),
			Needs: both, Run: publishDeliverAfter,
		},
		Case{
			ID: "publish/dedup", Section: sectionPublishing,
			Claim: "A message that is sent again under one dedup_id arrives once.",
			Applies: applies(writes, func(a *About) string {
				if !a.Publishing.Dedups {
					return "the destination does not look at dedup_id"
				}
				return ""
			}),
			Needs: both, Run: publishDedup,
		},
	)
}

// publishReceipts publishes lone messages, full frames and messages that fill a
// frame each. The stream's own watch sees receipts that come twice.
func publishReceipts(t *Trial) {
	const lone, burst, large = 5, 1000, 3
	p := t.Connected()
	c := t.Collect(p)
	b := p.Publisher()
	name := t.Destination()
	var keys []string
	for _, m := range t.Messages(name, lone, 0) {
		b.Confirmed(Outgoing(m)...)
		keys = append(keys, keyOf(m.Payload))
	}
	ms := t.Messages(name, burst, 0)
	if t.fits(200 << 10) {
		ms = append(ms, t.Messages(name, large, 200<<10)...)
	}
	b.Confirmed(Outgoing(ms...)...)
	keys = append(keys, Keys(ms)...)
	if _, doubles := c.Await(keys); doubles > 0 {
		t.doubled("%d of %d messages arrived more than once, though each was published once", doubles, len(keys))
	}
	c.Stop()
	p.Close()
}

// fits reports whether the destination takes payloads of a size.
func (t *Trial) fits(bytes int64) bool {
	if t.About.Publishing == nil {
		return true
	}
	most := t.About.Publishing.MaxBytes
	return most == 0 || bytes <= most
}

// fitting is a size of payloads, or the destination's limit where that is less.
func (t *Trial) fitting(bytes int) int {
	if t.fits(int64(bytes)) {
		return bytes
	}
	return int(t.About.Publishing.MaxBytes)
}

func publishOrder(t *Trial) {
	const n = 300
	p := t.Connected()
	c := t.Collect(p)
	ms := t.Messages(t.Destination(), n, 0)
	p.Publisher().Confirmed(Outgoing(ms...)...)
	keys := Keys(ms)
	c.Await(keys)
	at := 0
	for _, a := range c.Arrivals(n) {
		if at < len(keys) && a.Key == keys[at] {
			at++
		}
	}
	if at < n && t.About.All(func(c core.Capabilities) bool { return c.Order == core.OrderTotal }) {
		t.Errorf("message %d of %d (%s) did not arrive in its place", at+1, n, keys[at])
	}
	c.Stop()
	p.Close()
}

// returnsHere applies where the plugin itself feeds the subscription.
func returnsHere(a *About) string {
	if !a.Returns || a.Subject.Inject != nil {
		return "the messages of the subscription come from elsewhere"
	}
	return ""
}

func publishUnread(t *Trial) {
	const n = 2000
	p := t.Connected()
	s := p.Open(t.registration()) // without credit
	ms := t.Messages(s.Profiles()[0].Address, n, t.fitting(512))
	t.Put(p, ms)
	s.Credit(windowMessages, windowBytes)
	seen := 0
	for seen < n {
		ds := s.Take(1)
		s.Finish(ds...)
		seen++
	}
	s.End()
	p.Close()
}

func publishStalled(t *Trial) {
	const n = 50
	p := t.Connected()
	c := t.Collect(p)
	b := p.Publisher()
	stalled := t.fill(t.Subject.Stalled)
	waiting := b.Publish(Outgoing(t.Messages(stalled, n, 0)...)...)
	ms := t.Messages(t.Destination(), n, 0)
	b.Confirmed(Outgoing(ms...)...)
	c.Await(Keys(ms))
	b.Publish(Outgoing(t.Messages(stalled, 1, 0)...)...)
	b.mu.Lock()
	answered := 0
	for _, s := range waiting {
		if s.There && s.Receipt.Status == frame.ReceiptConfirmed {
			answered++
		}
	}
	b.mu.Unlock()
	if answered == n {
		t.Notef("the destination %s confirmed all messages: it does not stall", stalled)
	}
	c.Stop()
	p.Close() // what the stalled destination has is unknown then
}

// publishConfirms kills the process behind the last receipt, before anything
// has been read.
func publishConfirms(t *Trial) {
	const n = 40
	var keys []string
	c := t.outside()
	p := t.Connected()
	ms := t.Messages(t.Destination(), n, 0)
	p.Publisher().Confirmed(Outgoing(ms...)...)
	p.Kill()
	keys = Keys(ms)
	t.arrived(c, keys, "was confirmed before the process was killed")
}

// outside is the subject's collector where it has one, started before anything
// is published; nil where another process of the plugin will read.
func (t *Trial) outside() *Collected {
	if t.Subject.Collect == nil {
		return nil
	}
	return t.Collect(nil)
}

// arrived ends a case: what was published has arrived, or arrives in a new
// process.
func (t *Trial) arrived(c *Collected, keys []string, what string) {
	var p *Process
	if c == nil {
		p = t.Connected()
		c = t.Collect(p)
	}
	if _, doubles := c.Await(keys); doubles > 0 {
		t.Notef("%d of %d messages arrived more than once; each %s", doubles, len(keys), what)
	}
	c.Stop()
	if p != nil {
		p.Close()
	}
}

// publishFlush closes while receipts are missing.
func publishFlush(t *Trial) {
	const n = 600
	c := t.outside()
	p := t.Connected()
	b := p.Publisher()
	all := b.Publish(Outgoing(t.Messages(t.Destination(), n, t.fitting(512))...)...)
	b.HalfClose()
	p.Close()
	t.arrived(c, t.confirmed(all, false), "was confirmed before Close returned")
}

// confirmed are the keys of messages with a confirmed receipt. A plugin that is
// ending may refuse what it has not accepted yet.
func (t *Trial) confirmed(all []*Sending, ending bool) (keys []string) {
	var unknown, refused int
	for _, s := range all {
		switch {
		case !s.There || s.Receipt.Status == frame.ReceiptUnknown:
			unknown++
		case s.Receipt.Status == frame.ReceiptConfirmed:
			keys = append(keys, keyOf(s.Message.Payload))
		case ending:
			refused++
		default:
			t.Errorf("message %d was refused: %v", s.ID, s.Receipt.Fault)
		}
	}
	if unknown+refused > 0 {
		t.Notef("of %d messages %d had no receipt when the process ended, and %d were refused", len(all), unknown, refused)
	}
	return keys
}

// publishLeashFlush lets go of the leash while receipts are missing.
func publishLeashFlush(t *Trial) {
	const n = 600
	c := t.outside()
	p := t.Connected()
	b := p.Publisher()
	all := b.Publish(Outgoing(t.Messages(t.Destination(), n, t.fitting(512))...)...)
	if !b.until(func() bool { return b.missing < n || b.over }) {
		t.Fatalf("no receipt came within %v", t.Subject.Wait)
	}
	p.Unleash()
	t.arrived(c, t.confirmed(all, true), "was confirmed before the host was gone")
}

func publishHalfClose(t *Trial) {
	const n = 20
	p := t.Connected()
	if t.About.Unreadable == "" && t.About.Returns {
		p.Subscribe() // where a destination wants somebody who reads
	}
	b := p.Publisher()
	b.Publish(Outgoing(t.Messages(t.Destination(), n, 0)...)...)
	b.HalfClose()
	p.Close()
}

func publishDeliverAfter(t *Trial) {
	const delay = 700 * time.Millisecond
	if most := t.About.Publishing.MaxDelay; delay >= most {
		t.Skipf("max_delay is %v, and the case delays by %v", most, delay)
	}
	p := t.Connected()
	c := t.Collect(p)
	b := p.Publisher()
	ms := t.Messages(t.Destination(), 2, 0)
	out := Outgoing(ms...)
	out[0].DeliverAfter = delay
	sent := time.Now()
	b.Confirmed(out...)
	keys := Keys(ms)
	first, doubles := c.Await(keys)
	if doubles > 0 {
		t.doubled("a delayed message arrived more than once")
	}
	late := first[keys[0]].At.Sub(sent)
	if late < delay {
		t.Errorf("a message with deliver_after %v arrived after %v", delay, late)
	}
	if late > delay+t.Subject.Late {
		t.Errorf("a message with deliver_after %v arrived after %v, more than %v late", delay, late, t.Subject.Late)
	}
	if !first[keys[1]].At.Before(first[keys[0]].At) {
		t.Errorf("a message without deliver_after waited for the delayed one before it")
	}
	t.Notef("deliver_after %v was %v late", delay, (late - delay).Round(time.Millisecond))
	c.Stop()
	p.Close()
}

func publishDedup(t *Trial) {
	p := t.Connected()
	c := t.Collect(p)
	b := p.Publisher()
	ms := t.Messages(t.Destination(), 3, 0)
	first, other := Outgoing(ms[0])[0], Outgoing(ms[1])[0]
	first.DedupID, other.DedupID = t.Word+"-1", t.Word+"-2"
	b.Confirmed(first)
	b.Confirmed(first, other, first)
	b.Confirmed(Outgoing(ms[2])...)
	_, doubles := c.Await(Keys(ms))
	if doubles > 0 {
		t.Errorf("a message that was sent three times under one dedup_id arrived %d times", doubles+1)
	}
	c.Stop()
	p.Close()
}
