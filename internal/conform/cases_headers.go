// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// headerCases send headers that are easily spoilt. All have one rule: they
// arrive byte for byte and in order, or the publish is refused.
func headerCases() []Case {
	rule := func(id, claim string, sets func(t *Trial) []headerSet) Case {
		return Case{
			ID: "publish/headers-" + id, Section: sectionPublishing,
			Claim:   claim + " arrive byte for byte, or the publish is refused.",
			Applies: writes, Needs: collects,
			Run: func(t *Trial) { t.headers(sets(t)) },
		}
	}
	return []Case{
		rule("bytes", "Header values of any bytes", func(*Trial) []headerSet {
			every := make([]byte, 256)
			for i := range every {
				every[i] = byte(i)
			}
			return []headerSet{
				{what: "plain text", headers: core.Headers{{Name: "x-plain", Value: []byte("value 1")}}, must: textHeaders},
				{what: "every byte", headers: core.Headers{{Name: "x-bytes", Value: every}}, must: byteHeaders},
				{what: "bytes that are not UTF-8", headers: core.Headers{{Name: "x-bytes", Value: []byte{0xff, 0xfe, 0x80}}}, must: byteHeaders},
				{what: "line breaks, separators and quotes", headers: core.Headers{{Name: "x-text", Value: []byte("a\r\nb: c; d, \"e\"\x00\t%20\\")}}, must: byteHeaders},
				{what: "spaces at both ends", headers: core.Headers{{Name: "x-space", Value: []byte("  in between  ")}}, must: byteHeaders},
				{what: "UTF-8", headers: core.Headers{{Name: "x-utf8", Value: []byte("größer als 5 €, 日本")}}, must: byteHeaders},
				{what: "4 KiB", headers: core.Headers{{Name: "x-long", Value: bytes.Repeat([]byte("l"), 4<<10)}}, must: textHeaders},
			}
		}),
		rule("repeats", "Headers of one name, in their order,", func(t *Trial) []headerSet {
			must := textHeaders
			if !t.About.Publishing.Repeats {
				must = nil
			}
			return []headerSet{
				{what: "one name three times", must: must, headers: core.Headers{
					{Name: "x-tag", Value: []byte("b")}, {Name: "x-other", Value: []byte("1")}, {Name: "x-tag", Value: []byte("a")}, {Name: "x-tag", Value: []byte("b")},
				}},
				{what: "names that differ in case", must: must, headers: core.Headers{{Name: "X-Tag", Value: []byte("1")}, {Name: "x-tag", Value: []byte("2")}}},
			}
		}),
		rule("empty", "Empty header values", func(*Trial) []headerSet {
			return []headerSet{
				{what: "an empty value between others", must: byteHeaders, headers: core.Headers{
					{Name: "x-a", Value: []byte("1")}, {Name: "x-empty", Value: []byte{}}, {Name: "x-b", Value: []byte("2")},
				}},
				{what: "an empty name", headers: core.Headers{{Name: "", Value: []byte("nameless")}}},
				{what: "no header", headers: nil, must: anyHeaders},
			}
		}),
		rule("names", "Header names with their case and in any script", func(*Trial) []headerSet {
			return []headerSet{
				{what: "upper and lower case", must: textHeaders, headers: core.Headers{{Name: "X-Mixed-Case", Value: []byte("v")}}},
				{what: "other scripts", headers: core.Headers{{Name: "größe", Value: []byte("v")}, {Name: "大きさ", Value: []byte("w")}}},
				{what: "separators", headers: core.Headers{{Name: "a b:c;d=e", Value: []byte("v")}}},
				{what: "a name of 300 bytes", headers: core.Headers{{Name: strings.Repeat("n", 300), Value: []byte("v")}}},
				{what: "names of the runtime", must: textHeaders, headers: core.Headers{
					{Name: "content-type", Value: []byte("application/json")}, {Name: "x-ruststream-retry-count", Value: []byte("3")}, {Name: "x-longshore-reason", Value: []byte("drop")},
				}},
			}
		}),
		rule("many", "As many headers as the destination allows", func(t *Trial) []headerSet {
			most := t.About.Publishing.MaxHeaders
			n := 64
			if most > 0 {
				n = most
			}
			sets := []headerSet{{what: fmt.Sprintf("%d headers", n), headers: manyHeaders(n), must: textHeaders}}
			if most > 0 && most < frame.MaxHeaders {
				sets = append(sets, headerSet{what: fmt.Sprintf("%d headers, one more than max_headers", most+1), headers: manyHeaders(most + 1), refused: true})
			}
			return sets
		}),
	}
}

func manyHeaders(n int) core.Headers {
	hs := make(core.Headers, n)
	for i := range hs {
		hs[i] = core.Header{Name: fmt.Sprintf("x-%d", i), Value: fmt.Appendf(nil, "%d", i)}
	}
	return hs
}

// headerSet is one list of headers.
type headerSet struct {
	what    string
	headers core.Headers
	must    func(core.HeaderMode) bool // the modes that have to carry it; nil = none
	refused bool                       // it has to be refused
}

func anyHeaders(core.HeaderMode) bool    { return true }
func textHeaders(m core.HeaderMode) bool { return m != core.HeadersNone }
func byteHeaders(m core.HeaderMode) bool {
	return m == core.HeadersNativeBytes || m == core.HeadersEnveloped
}

// headers publishes one message with each set and compares what arrives.
func (t *Trial) headers(sets []headerSet) {
	p := t.Connected()
	c := t.Collect(p)
	b := p.Publisher()
	ms := t.Messages(t.Destination(), len(sets), 0)
	out := Outgoing(ms...)
	for i, set := range sets {
		out[i].Message.Headers = set.headers
	}
	var keys []string
	mode := t.About.Publishing.Headers
	for i, s := range b.Send(out...) {
		set := &sets[i]
		switch s.Receipt.Status {
		case frame.ReceiptConfirmed:
			if set.refused {
				t.Errorf("%s: was confirmed, and has to be REFUSED", set.what)
			}
			keys = append(keys, keyOf(ms[i].Payload))
		case frame.ReceiptRefused:
			if set.must != nil && set.must(mode) && !set.refused && t.takes(ms[i], set.headers) {
				t.Errorf("%s: refused, though headers travel %v: %v", set.what, mode, s.Receipt.Fault)
			}
			if f := s.Receipt.Fault; f == nil || f.Message == "" {
				t.Errorf("%s: refused without a reason", set.what)
			}
		default:
			t.Errorf("%s: the receipt is %s: %v", set.what, receiptWord(s.Receipt.Status), s.Receipt.Fault)
		}
	}
	first, _ := c.Await(keys)
	for i, set := range sets {
		if a, ok := first[keyOf(ms[i].Payload)]; ok {
			t.sameHeaders(set.what, a.Headers, set.headers)
		}
	}
	c.Stop()
	p.Close()
}

// takes reports whether a message is within the destination's limits.
func (t *Trial) takes(m core.Message, hs core.Headers) bool {
	m.Headers = hs
	p := t.About.Publishing
	return t.fits(int64(frame.Weight(&m))) && (p.MaxHeaders == 0 || len(hs) <= p.MaxHeaders)
}

// sameHeaders compares what arrived with what was sent. Headers that the
// transport adds itself are left out, and where names do not repeat headers have no
// order.
func (t *Trial) sameHeaders(what string, got, want core.Headers) {
	sent := map[string]bool{}
	for _, h := range want {
		sent[h.Name] = true
	}
	own := got[:0:0]
	for _, h := range got {
		if sent[h.Name] {
			own = append(own, h)
		}
	}
	if !t.About.Publishing.Repeats {
		byName := func(a, b core.Header) int { return strings.Compare(a.Name, b.Name) }
		want = slices.SortedStableFunc(slices.Values(want), byName)
		slices.SortStableFunc(own, byName)
	}
	for i, h := range want {
		switch {
		case i >= len(own):
			t.Errorf("%s: header %q did not arrive; %d of %d did", what, h.Name, len(own), len(want))
			return
		case own[i].Name != h.Name:
			t.Errorf("%s: header %q arrived in place of %q", what, own[i].Name, h.Name)
			return
		case !bytes.Equal(own[i].Value, h.Value):
			t.Errorf("%s: header %q arrived as %.80q, not as %.80q", what, h.Name, own[i].Value, h.Value)
		}
	}
	if len(own) > len(want) {
		t.Errorf("%s: %d headers arrived, %d were sent", what, len(own), len(want))
	}
}
