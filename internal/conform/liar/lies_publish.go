// SPDX-License-Identifier: Apache-2.0

package liar

import (
	"strings"
	"time"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// late is how long a message is confirmed and not stored.
const late = 200 * time.Millisecond

// keep makes a lie of what is stored in place of a message.
func keep(change func(o *pb.Outgoing)) func(c *Conduct) {
	return func(c *Conduct) {
		c.Keep = func(o *pb.Outgoing) *pb.Outgoing {
			change(o)
			return o
		}
	}
}

func publishLies() []Lie {
	return []Lie{
		{Name: "drops-header", Wrong: "loses the last header of each message", Cases: []string{"publish/headers-bytes"},
			tell: keep(func(o *pb.Outgoing) { o.Headers = o.GetHeaders()[:max(0, len(o.GetHeaders())-1)] })},
		{Name: "swaps-headers", Wrong: "changes the order of the first two headers", Cases: []string{"publish/headers-repeats", "publish/headers-empty"},
			tell: keep(func(o *pb.Outgoing) {
				if hs := o.GetHeaders(); len(hs) > 1 {
					hs[0], hs[1] = hs[1], hs[0]
				}
			})},
		{Name: "spoils-payload", Wrong: "changes the last byte of payloads from 1 KiB on", Cases: []string{"credit/bytes"},
			tell: keep(func(o *pb.Outgoing) {
				if p := o.GetPayload(); len(p) >= 1<<10 {
					p[len(p)-1] ^= 1
				}
			})},
		{Name: "first-of-frame", Wrong: "stores the first message of a frame and confirms all", Cases: []string{"publish/receipts"},
			tell: func(c *Conduct) { c.FirstAlone = true }},
		{Name: "reorders-published", Wrong: "delivers in another order than it was published in", Cases: []string{"publish/order"},
			tell: func(c *Conduct) { c.Swaps = true }},
		{Name: "loses-some", Wrong: "confirms every 500th message and drops it", Cases: []string{"publish/receipts", "settle/burst"},
			tell: func(c *Conduct) {
				n := 0
				c.Keep = func(o *pb.Outgoing) *pb.Outgoing {
					if n++; n%500 == 0 {
						return nil
					}
					return o
				}
			}},
		{Name: "crosses", Wrong: "puts a message into the queue of the one before it now and then", Cases: []string{"settle/beside"},
			tell: func(c *Conduct) {
				last := ""
				c.Keep = func(o *pb.Outgoing) *pb.Outgoing {
					if name := o.GetName(); name != last && last != "" {
						o.Name, last = last, name
					} else {
						last = name
					}
					return o
				}
			}},
		{Name: "joins-repeats", Wrong: "joins headers of one name with a comma", Cases: []string{"publish/headers-repeats"},
			tell: keep(func(o *pb.Outgoing) { o.Headers = merged(o.GetHeaders(), true) })},
		{Name: "hides-repeats", Wrong: "keeps one of several headers of one name", Cases: []string{"publish/headers-repeats"},
			tell: keep(func(o *pb.Outgoing) { o.Headers = merged(o.GetHeaders(), false) })},
		{Name: "lowercases-headers", Wrong: "changes the case of header names", Cases: []string{"publish/headers-names"},
			tell: keep(func(o *pb.Outgoing) {
				for _, h := range o.GetHeaders() {
					h.Name = strings.ToLower(h.GetName())
				}
			})},
		{Name: "text-headers", Wrong: "replaces bytes of header values that are no text", Cases: []string{"publish/headers-bytes"},
			tell: keep(func(o *pb.Outgoing) {
				for _, h := range o.GetHeaders() {
					h.Value = []byte(strings.ToValidUTF8(string(h.GetValue()), "?"))
				}
			})},
		{Name: "truncates-payload", Wrong: "cuts payloads at 1 MiB", Cases: []string{"publish/payload-5mib"},
			tell: keep(func(o *pb.Outgoing) { o.Payload = o.GetPayload()[:min(len(o.GetPayload()), 1<<20)] })},
		{Name: "text-payloads", Wrong: "replaces bytes of payloads that are no text", Cases: []string{"publish/payload-1"},
			tell: keep(func(o *pb.Outgoing) { o.Payload = []byte(strings.ToValidUTF8(string(o.GetPayload()), "?")) })},
		{Name: "drops-largest", Wrong: "confirms and drops messages from 7 MiB on, below its limit", Cases: []string{"publish/payload-max"},
			tell: func(c *Conduct) {
				c.Keep = func(o *pb.Outgoing) *pb.Outgoing {
					if len(o.GetPayload()) >= 7<<20 {
						return nil
					}
					return o
				}
			}},
		{Name: "drops-copies", Wrong: "confirms and drops what is published as a dead letter", Cases: []string{"copy/carry"},
			tell: func(c *Conduct) {
				c.Keep = func(o *pb.Outgoing) *pb.Outgoing {
					if o.GetPurpose() == pb.Purpose_PURPOSE_DEAD_LETTER {
						return nil
					}
					return o
				}
			}},
		{Name: "waits-for-readers", Wrong: "takes no messages into a queue that nobody reads", Cases: []string{"publish/unread"},
			tell: func(c *Conduct) { c.WaitsUnread = true }},
		{Name: "hangs-half", Wrong: "does not end the publish stream behind the host's half-close", Cases: []string{"publish/half-close"},
			tell: func(c *Conduct) { c.HangsHalf = true }},
		{Name: "loses-at-leash", Wrong: "loses what it has confirmed when its host is gone", Cases: []string{"publish/leash-flush"},
			tell: func(c *Conduct) { c.StoresAfter, c.LosesLast = late, true }},
		{Name: "drops-empty", Wrong: "loses messages without payload", Cases: []string{"publish/payload-0"},
			tell: func(c *Conduct) {
				c.Keep = func(o *pb.Outgoing) *pb.Outgoing {
					if len(o.GetPayload()) == 0 {
						return nil
					}
					return o
				}
			}},
		{Name: "takes-too-large", Wrong: "confirms what is over its limits, and drops it", Cases: []string{"publish/payload-over", "publish/headers-many"},
			tell: func(c *Conduct) { c.NoLimits = true }},
		{Name: "deliver-after-early", Wrong: "delivers at once what is to be delivered later", Cases: []string{"publish/deliver-after"},
			tell: func(c *Conduct) { c.NoDelays = true }},
		{Name: "no-dedup", Wrong: "stores a message again that was sent again under one dedup_id", Cases: []string{"publish/dedup"},
			tell: func(c *Conduct) { c.NoDedup = true }},
		{Name: "delivers-twice", Wrong: "delivers each message twice", Cases: []string{"publish/receipts", "settle/ack"},
			tell: func(c *Conduct) { c.Copies = 1 }},
		{Name: "confirms-before-storing", Wrong: "confirms 200 ms before a message is stored", Cases: []string{"publish/confirms"},
			tell: func(c *Conduct) { c.StoresAfter = late }},
		{Name: "loses-last-frame", Wrong: "confirms the last messages before the end and loses them", Cases: []string{"publish/flush"},
			tell: func(c *Conduct) { c.StoresAfter, c.LosesLast = late, true }},
		{Name: "stalls-all", Wrong: "answers nothing behind a destination that does not answer", Cases: []string{"publish/stalled"},
			tell: func(c *Conduct) { c.StallsAll = true }},
		{Name: "second-receipt", Wrong: "answers each message twice", Cases: []string{"publish/receipts"},
			tell: func(c *Conduct) {
				c.Receipts = func(rs []*pb.Receipt) []*pb.Receipt { return append(rs, rs...) }
			}},
		{Name: "no-receipt", Wrong: "does not answer every third message", Cases: []string{"publish/receipts"},
			tell: func(c *Conduct) { c.Receipts = answered(func(r *pb.Receipt) bool { return r.GetId()%3 != 0 }) }},
		{Name: "swallows-refusal", Wrong: "does not answer what it refuses", Cases: []string{"publish/payload-over"},
			tell: func(c *Conduct) {
				c.Receipts = answered(func(r *pb.Receipt) bool { return r.GetStatus() != pb.ReceiptStatus_RECEIPT_STATUS_REFUSED })
			}},
	}
}

// answered leaves the receipts that are as f asks.
func answered(f func(r *pb.Receipt) bool) func(rs []*pb.Receipt) []*pb.Receipt {
	return func(rs []*pb.Receipt) []*pb.Receipt {
		var out []*pb.Receipt
		for _, r := range rs {
			if f(r) {
				out = append(out, r)
			}
		}
		return out
	}
}

// merged leaves one header a name, with the values joined or the last one.
func merged(hs []*pb.Header, join bool) []*pb.Header {
	var out []*pb.Header
	at := map[string]*pb.Header{}
	for _, h := range hs {
		first, ok := at[h.GetName()]
		switch {
		case !ok:
			at[h.GetName()] = h
			out = append(out, h)
		case join:
			first.Value = append(append(first.GetValue(), ','), h.GetValue()...)
		default:
			first.Value = h.GetValue()
		}
	}
	return out
}
