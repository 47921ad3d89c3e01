// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bytes"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// payloadCases send payloads of sizes at which things go wrong.
func payloadCases() []Case {
	size := func(id, claim string, bytes func(a *About) int) Case {
		return Case{
			ID: "publish/payload-" + id, Section: sectionLimits, Claim: claim,
			Applies: applies(writes, func(a *About) string {
				if n := bytes(a); n < 0 {
					return "the destination has no limit of its own below the protocol's"
				}
				return ""
			}),
			Needs: collects,
			Run:   func(t *Trial) { t.payload(bytes(t.About)) },
		}
	}
	fixed := func(n int) func(*About) int { return func(*About) int { return n } }
	return []Case{
		size("0", "An empty payload arrives as one.", fixed(0)),
		size("1", "A payload of one byte arrives, whatever the byte.", fixed(1)),
		size("5mib", "A payload of 5 MiB arrives byte for byte, or is refused where max_bytes is less.", fixed(5<<20)),
		size("max", "A payload as large as the destination allows arrives byte for byte.", func(a *About) int { return int(limitOf(a)) }),
		size("over", "A payload one byte over max_bytes is REFUSED as TOO_LARGE, and the next message goes on.", func(a *About) int {
			if limitOf(a) >= frame.MaxPayload {
				return -1
			}
			return int(limitOf(a)) + 1
		}),
	}
}

// limitOf is the largest payload of a message without headers.
func limitOf(a *About) int64 {
	if a.Publishing == nil {
		return 0
	}
	if most := a.Publishing.MaxBytes; most > 0 && most < frame.MaxPayload {
		return most
	}
	return frame.MaxPayload
}

// largePayload is from where on a payload gets more time.
const largePayload = 16 << 20

// payload publishes one payload of n bytes and a small message behind it.
func (t *Trial) payload(n int) {
	if n > largePayload {
		t.Subject.Wait *= 3
	}
	p := t.Connected()
	c := t.Collect(p)
	b := p.Publisher()
	name := t.Destination()
	payload := make([]byte, n)
	for i := range payload {
		payload[i] = byte(i ^ i>>8)
	}
	if n == 1 {
		payload[0] = 0xff
	}
	sent := b.Send(frame.Outgoing{Message: core.Message{Name: name, Payload: payload}})[0]
	behind := t.Messages(name, 1, 0)
	b.Confirmed(Outgoing(behind...)...)
	over := int64(n) > limitOf(t.About)
	fault := sent.Receipt.Fault
	switch status := sent.Receipt.Status; {
	case status == frame.ReceiptConfirmed && over:
		t.Errorf("a payload of %d bytes was confirmed, over max_bytes %d", n, t.About.Publishing.MaxBytes)
	case status == frame.ReceiptRefused && over:
		if fault == nil || fault.Code != core.FaultTooLarge {
			t.Errorf("a payload of %d bytes was refused with %v, not with TOO_LARGE", n, fault)
		} else if fault.Transient {
			t.Errorf("a payload of %d bytes was refused as transient: sent again it is as large", n)
		}
	case status == frame.ReceiptRefused && n <= 1 && t.plainRefusal(fault):
		t.Notef("a payload of %d bytes is refused: %v", n, fault)
	case status != frame.ReceiptConfirmed:
		t.Errorf("a payload of %d bytes got the receipt %s: %v", n, receiptWord(status), fault)
	}
	want := 2
	if sent.Receipt.Status != frame.ReceiptConfirmed {
		want = 1
	}
	c.Await(Keys(behind))
	got := c.Arrivals(want)
	for _, a := range got {
		if a.Key == "" && sent.Receipt.Status == frame.ReceiptConfirmed {
			t.samePayload(a.Payload, payload)
		}
	}
	if len(got) > want {
		t.doubled("%d messages arrived, and %d were published", len(got), want)
	} else if len(got) < want {
		t.Errorf("%d messages arrived, and %d were published", len(got), want)
	}
	c.Stop()
	p.Close()
}

// plainRefusal reports whether a fault says why, which is all that a transport
// of text owes for bytes that it cannot carry.
func (t *Trial) plainRefusal(f *core.Fault) bool {
	return f != nil && f.Message != "" && !f.Transient && (f.Code == core.FaultInvalid || f.Code == core.FaultUnsupported)
}

func (t *Trial) samePayload(got, want []byte) {
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	t.Errorf("a payload of %d bytes arrived with %d bytes; it differs from byte %d on", len(want), len(got), at)
}
