// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// summed is a payload as it follows a MESSAGE: with its checksum.
func summed(b []byte) []byte {
	out := binary.BigEndian.AppendUint32([]byte{0x0e, 0x01}, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return append(out, b...)
}

// sized is metadata with its size before it.
func sized(metadata []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(metadata))), metadata...)
}

// delivered is a Delivery of a payload.
func delivered(payload []byte) *Delivery {
	return &Delivery{Ledger: 3, Entry: 4, Redelivered: 5, Payload: payload}
}

const (
	headText  = "0a0170 1002 18e807"                      // of producer p, number 2, at 1000
	batchText = headText + "5803"                         // three messages
	firstText = "0000000a 0a060a0161120162 1802 6869"     // property a=b, payload hi
	nextText  = "0000000a 12016b 1801 2805 3a016f78"      // key k, event 5, ordering key o, payload x
	emptyText = "00000002 1800"                           // nothing
	goneText  = "00000004 1802 2001 6f6f"                 // taken away by compaction
	fullText  = "2206 0a0161 120162 32016b 6005 9201016f" // property a=b, key k, event 5, ordering key o
)

func TestMessages(t *testing.T) {
	single := func(n int32) MessageID { return MessageID{Ledger: 3, Entry: 4, Batch: n, Size: 3} }
	whole := MessageID{Ledger: 3, Entry: 4, Batch: NoBatch}
	property := []Property{{[]byte("a"), []byte("b")}}
	first := Message{ID: single(0), Redelivered: 5, PublishTime: 1000, Properties: property, Payload: []byte("hi")}
	next := Message{ID: single(1), Redelivered: 5, PublishTime: 1000, Key: []byte("k"), OrderingKey: []byte("o"), EventTime: 5, Payload: []byte("x")}
	last := Message{ID: single(2), Redelivered: 5, PublishTime: 1000}
	some := func(bits uint64, ms ...Message) []Message {
		for i := range ms {
			ms[i].Left = []uint64{bits}
		}
		return ms
	}
	plain := Message{ID: whole, Redelivered: 5, PublishTime: 1000, Payload: []byte("hi")}
	compressed := func(how, payload string) []byte {
		return summed(append(sized(bytesOf(t, headText+how+"4802")), bytesOf(t, payload)...))
	}
	batch := func(messages string) []byte {
		return summed(append(sized(bytesOf(t, batchText)), bytesOf(t, messages)...))
	}
	for name, tt := range map[string]struct {
		payload []byte
		left    []uint64
		want    []Message
		count   int
	}{
		"one":         {summed(append(sized(bytesOf(t, headText)), "hi"...)), nil, []Message{plain}, 1},
		"no payload":  {summed(sized(bytesOf(t, headText))), nil, []Message{{ID: whole, Redelivered: 5, PublishTime: 1000}}, 1},
		"no checksum": {append(sized(bytesOf(t, headText)), "hi"...), nil, []Message{plain}, 1},
		"all fields": {
			summed(append(sized(bytesOf(t, headText+fullText)), "hi"...)), nil,
			[]Message{{ID: whole, Redelivered: 5, PublishTime: 1000, Key: []byte("k"), OrderingKey: []byte("o"), EventTime: 5, Properties: property, Payload: []byte("hi")}},
			1,
		},
		"fields not known, of all kinds": {
			summed(append(sized(bytesOf(t, "e00701 e20701ff e50700000000 e1070000000000000000"+headText)), "hi"...)), nil,
			[]Message{plain}, 1,
		},
		"broker's metadata": {
			append(bytesOf(t, "0e02 00000004 0801 1002"), summed(append(sized(bytesOf(t, headText)), "hi"...))...), nil,
			[]Message{plain}, 1,
		},
		"broker's metadata, no checksum": {
			append(bytesOf(t, "0e02 00000000"), append(sized(bytesOf(t, headText)), "hi"...)...), nil,
			[]Message{plain}, 1,
		},
		"LZ4":                {compressed("4001", "20 6869"), nil, []Message{plain}, 1},
		"ZLIB":               {compressed("4002", "789ccbc80400013b00d2"), nil, []Message{plain}, 1},
		"ZSTD":               {compressed("4003", "28b52ffd 20 02 110000 6869"), nil, []Message{plain}, 1},
		"Snappy":             {compressed("4004", "02 04 6869"), nil, []Message{plain}, 1},
		"size, uncompressed": {compressed("", "6869"), nil, []Message{plain}, 1},
		"nothing, compressed": {
			summed(sized(bytesOf(t, headText+"4001"))), nil,
			[]Message{{ID: whole, Redelivered: 5, PublishTime: 1000}}, 1,
		},
		"nothing, compressed to a byte": {
			summed(append(sized(bytesOf(t, headText+"4001")), 0)), nil,
			[]Message{{ID: whole, Redelivered: 5, PublishTime: 1000}}, 1,
		},
		"batch":                 {batch(firstText + nextText + emptyText), nil, []Message{first, next, last}, 3},
		"batch, more behind it": {batch(firstText + nextText + emptyText + "ff"), nil, []Message{first, next, last}, 3},
		"batch, compacted":      {batch(goneText + nextText + goneText), nil, some(0b10, next), 3},
		"batch, acked in part":  {batch(firstText + nextText + emptyText), []uint64{0b101}, some(0b101, first, last), 3},
		"batch, acked":          {batch(firstText + nextText + emptyText), []uint64{}, nil, 3},
		"batch of one": {
			summed(append(sized(bytesOf(t, headText+"5801")), bytesOf(t, nextText)...)), nil,
			[]Message{{ID: MessageID{3, 4, 0, 1}, Redelivered: 5, PublishTime: 1000, Key: []byte("k"), OrderingKey: []byte("o"), EventTime: 5, Payload: []byte("x")}},
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := delivered(tt.payload)
			d.Left = tt.left
			before := Message{Key: []byte("before")}
			got, err := d.Messages([]Message{before})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append([]Message{before}, tt.want...), got, cmpopts.EquateEmpty()); diff != "" || d.Count != tt.count {
				t.Errorf("%d messages; want %d\n%s", d.Count, tt.count, diff)
			}
		})
	}
}

// The bits of what is acked go on in a second word.
func TestMessagesLeft(t *testing.T) {
	var b Batch
	for range 130 {
		b.Add(&Outgoing{Payload: []byte("x")})
	}
	d := delivered(payloadOf(b.AppendSend(nil, &Send{})))
	d.Left = []uint64{1 << 63, 1} // without the word of the last two, as Java leaves it out
	got, err := d.Messages(nil)
	if err != nil || len(got) != 2 || got[0].ID.Batch != 63 || got[1].ID.Batch != 64 || got[1].ID.Size != 130 || d.Count != 130 ||
		!slices.Equal(got[0].Left, []uint64{1 << 63, 1, 0}) {
		t.Errorf("got %v, %v, %d", got, err, d.Count)
	}
}

func TestMessagesRefused(t *testing.T) {
	plain := summed(append(sized(bytesOf(t, headText)), "hi"...))
	changed := bytes.Clone(plain)
	changed[len(changed)-1]++
	batchChanged := summed(append(sized(bytesOf(t, batchText)), bytesOf(t, firstText+nextText+emptyText)...))
	batchChanged[len(batchChanged)-1]++
	with := func(head, payload string) []byte {
		return summed(append(sized(bytesOf(t, headText+head)), bytesOf(t, payload)...))
	}
	for name, tt := range map[string]struct {
		payload []byte
		kind    EntryKind
		count   int
		want    string
	}{
		"nothing":                        {nil, EntryMalformed, 1, "metadata is broken"},
		"three bytes":                    {[]byte{0, 0, 0}, EntryMalformed, 1, "metadata is broken"},
		"broker's metadata beyond":       {bytesOf(t, "0e02 00000005 0801"), EntryMalformed, 1, "5 bytes of the broker are to be in 2"},
		"metadata beyond":                {summed(bytesOf(t, "00000009 0a01")), EntryMalformed, 1, "metadata is broken"},
		"metadata broken":                {summed(sized(bytesOf(t, "0a05 70"))), EntryMalformed, 1, "metadata is broken"},
		"metadata with groups left open": {summed(sized(bytesOf(t, "0b"))), EntryMalformed, 1, "metadata is broken"},
		"property broken":                {with("2201 0a", ""), EntryMalformed, 1, "metadata is broken"},
		"checksum":                       {changed, EntryChecksum, 1, "checksum"},
		"checksum of a batch":            {batchChanged, EntryChecksum, 3, "checksum"},
		"checksum, metadata unreadable":  {bytesOf(t, "0e01 00000000 ffffffff"), EntryChecksum, 1, "checksum"},
		"encrypted":                      {with("6a07 0a016b 120276 76", "6869"), EntryEncrypted, 1, "encrypted"},
		"encrypted batch":                {with("5803 6a00", "6869"), EntryEncrypted, 3, "encrypted"},
		"chunked":                        {with("d80103 e00106 e80100", "6869"), EntryChunked, 1, "3 chunks"},
		"compression not known":          {with("4005 4802", "6869"), EntryCompressed, 1, "compression 5 is not known"},
		"LZ4, too little":                {with("4001 4803", "20 6869"), EntryCompressed, 1, "LZ4"},
		"LZ4, too much":                  {with("4001 4801", "20 6869"), EntryCompressed, 1, "LZ4"},
		"LZ4, size not said":             {with("4001", "20 6869"), EntryCompressed, 1, "LZ4"},
		"LZ4, nothing":                   {with("4001 4802", ""), EntryCompressed, 1, "LZ4"},
		"LZ4, broken":                    {with("4001 4802", "ff"), EntryCompressed, 1, "LZ4"},
		"ZLIB, too little":               {with("4002 4803", "789ccbc80400013b00d2"), EntryCompressed, 1, "unexpected EOF"},
		"ZLIB, too much":                 {with("4002 4801", "789ccbc80400013b00d2"), EntryCompressed, 1, "2 bytes, in place of 1"},
		"ZLIB, checksum":                 {with("4002 4802", "789ccbc80400013b00d3"), EntryCompressed, 1, "checksum"},
		"ZLIB, cut":                      {with("4002 4802", "789ccbc80400013b"), EntryCompressed, 1, "EOF"},
		"ZLIB, nothing":                  {with("4002 4802", ""), EntryCompressed, 1, "ZLIB"},
		"ZSTD, too little":               {with("4003 4803", "28b52ffd 20 02 110000 6869"), EntryCompressed, 1, "2 bytes, in place of 3"},
		"ZSTD, too much":                 {with("4003 4801", "28b52ffd 20 02 110000 6869"), EntryCompressed, 1, "ZSTD"},
		"ZSTD, size not said":            {with("4003", "28b52ffd 20 02 110000 6869"), EntryCompressed, 1, "ZSTD"},
		"ZSTD, broken":                   {with("4003 4802", "28b52ffd 20 02"), EntryCompressed, 1, "ZSTD"},
		"Snappy, too little":             {with("4004 4803", "02 04 6869"), EntryCompressed, 1, "2 bytes, in place of 3"},
		"Snappy, too much":               {with("4004 4801", "02 04 6869"), EntryCompressed, 1, "2 bytes, in place of 1"},
		"Snappy, broken":                 {with("4004 4802", "02 08 6869"), EntryCompressed, 1, "SNAPPY"},
		"more than can be":               {with("4001 48808004", "20 6869"), EntryCompressed, 1, "3 bytes cannot become 65536"},
		"over the limit":                 {with("4003 4881808020", "28b52ffd 20 02 110000 6869"), EntryCompressed, 1, "over the limit"},
		"batch of none":                  {with("5800", firstText), EntryMalformed, 1, "0 messages are to be in"},
		"batch of fewer than none":       {with("58ffffffffffffffffff01", firstText), EntryMalformed, 1, "-1 messages are to be in"},
		"batch of more than can be":      {with("5803", firstText), EntryMalformed, 3, "3 messages are to be in 16 bytes"},
		"batch, the second broken":       {with("5802", firstText+"00000005 1801"), EntryMalformed, 2, "message 1 of the batch"},
		"batch, payload beyond":          {with("5801", "00000002 1803 6869"), EntryMalformed, 1, "message 0 of the batch"},
		"batch, payload below nothing":   {with("5801", "0000000b 18ffffffffffffffffff01 6869"), EntryMalformed, 1, "message 0 of the batch"},
		"batch, metadata broken":         {with("5801", "00000004 1802 0a05 6869"), EntryMalformed, 1, "message 0 of the batch"},
	} {
		t.Run(name, func(t *testing.T) {
			d := delivered(tt.payload)
			got, err := d.Messages([]Message{{}})
			e, ok := errors.AsType[*EntryError](err)
			if !ok || len(got) != 1 || d.Count != tt.count {
				t.Fatalf("got %d messages of %d, %v; want %d", len(got)-1, d.Count, err, tt.count)
			}
			if e.Kind != tt.kind || e.Ledger != 3 || e.Entry != 4 || !strings.Contains(err.Error(), "entry 3:4: "+tt.kind.String()+": ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v error %q; want %v, %q", e.Kind, err, tt.kind, tt.want)
			}
			if (e.Unwrap() != nil) != (tt.kind == EntryCompressed) {
				t.Errorf("its reason is %v", e.Unwrap())
			}
		})
	}
}

// What is sent is received, in each compression, alone and in batches.
func TestSendAndReceive(t *testing.T) {
	sizes := []int{0, 1, 15, 100, 512, 70_000, 1 << 20}
	for _, c := range []Compression{NoCompression, LZ4, ZLib, ZSTD, Snappy} {
		t.Run(c.String(), func(t *testing.T) {
			s := Send{Producer: 1, Sequence: 7, Name: "p", PublishTime: 1000, Compression: c}
			var batch Batch
			var all []Message
			for i, n := range sizes {
				for _, text := range [][]byte{bytes.Repeat([]byte("longshore "), n/10+1)[:n], noise(n)} {
					m := Outgoing{Key: fmt.Sprint(i), EventTime: int64(i), Payload: text, Properties: []OutgoingProperty{
						{"n", fmt.Append(nil, n)}, {"empty", nil}, {strings.Repeat("x", 200), noise(300)},
					}}
					want := Message{
						ID: MessageID{3, 4, NoBatch, 0}, Redelivered: 5, PublishTime: 1000, Key: []byte(m.Key), EventTime: int64(i), Payload: text,
						Properties: []Property{{[]byte("n"), m.Properties[0].Value}, {[]byte("empty"), nil}, {[]byte(m.Properties[2].Name), m.Properties[2].Value}},
					}
					got, err := delivered(payloadOf(AppendSend(nil, &s, &m))).Messages(nil)
					if diff := cmp.Diff([]Message{want}, got, cmp.Comparer(bytes.Equal)); err != nil || diff != "" {
						t.Fatalf("%d bytes: %v\n%.2000s", n, err, diff)
					}
					batch.Add(&m)
					want.ID.Batch, want.ID.Size = int32(len(all)), int32(2*len(sizes))
					all = append(all, want)
				}
			}
			got, err := delivered(payloadOf(batch.AppendSend(nil, &s))).Messages(nil)
			if diff := cmp.Diff(all, got, cmp.Comparer(bytes.Equal)); err != nil || diff != "" {
				t.Errorf("batch: %v\n%.2000s", err, diff)
			}
		})
	}
}

// noise are bytes that cannot be compressed.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}

// What becomes much more than it says, or than it may, costs no memory but what was
// said, within the limit.
func TestMessagesBomb(t *testing.T) {
	zeros := make([]byte, 8<<20)
	for _, c := range []Compression{LZ4, ZLib, ZSTD, Snappy} {
		bomb := appendCompressed(nil, c, zeros)
		for _, said := range []uint32{1000, maxUncompressed + 1, 1<<32 - 1} {
			head := appendVarint(appendVarint(bytesOf(t, headText), 8, uint64(c)), 9, uint64(said))
			d := delivered(summed(append(sized(head), bomb...)))
			_, _ = d.Messages(nil) // what the compression needs for good
			if each := allocated(1, func() {
				if _, err := d.Messages(nil); err == nil {
					t.Errorf("%v, said %d: no error", c, said)
				}
			}); each > 1<<20 {
				t.Errorf("%v, said %d: it costs %d bytes", c, said, each)
			}
		}
	}
}

// The messages and the properties of an entry are bounded: each is many times larger
// than what makes it.
func TestMessagesParts(t *testing.T) {
	empty := bytesOf(t, emptyText)
	for n, refused := range map[int]bool{maxParts: false, maxParts + 1: true} {
		head := appendVarint(bytesOf(t, headText), 11, uint64(n))
		_, err := delivered(summed(append(sized(head), bytes.Repeat(empty, n)...))).Messages(nil)
		if e, ok := errors.AsType[*EntryError](err); ok != refused || ok && e.Kind != EntryMalformed {
			t.Errorf("%d messages: %v", n, err)
		}
		single := sized(append(bytes.Repeat(bytesOf(t, "0a04 0a00 1200"), n-1), bytesOf(t, "1800")...))
		_, err = delivered(summed(append(sized(bytesOf(t, headText+"5801")), single...))).Messages(nil)
		if e, ok := errors.AsType[*EntryError](err); ok != refused || ok && e.Kind != EntryMalformed {
			t.Errorf("%d properties in a batch: %v", n-1, err)
		}
		_, err = delivered(summed(sized(append(bytesOf(t, headText), bytes.Repeat(bytesOf(t, "2204 0a00 1200"), n-1)...)))).Messages(nil)
		if e, ok := errors.AsType[*EntryError](err); ok != refused || ok && e.Kind != EntryMalformed {
			t.Errorf("%d properties: %v", n-1, err)
		}
	}
}

// Properties of earlier messages stay as they are.
func TestMessagesProperties(t *testing.T) {
	var d Delivery
	var got []Message
	for i := range 500 {
		m := Outgoing{}
		for k := range i % 7 {
			m.Properties = append(m.Properties, OutgoingProperty{fmt.Sprint(i), fmt.Append(nil, k)})
		}
		f, err := NewReader(bytes.NewReader(messageOf(AppendSend(nil, &Send{}, &m), 1, 2, int64(i)))).Next()
		if err == nil {
			err = f.Delivery(&d)
		}
		if err == nil {
			got, err = d.Messages(got)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, m := range got {
		if m.ID.Entry != int64(i) || len(m.Properties) != i%7 || cap(m.Properties) != len(m.Properties) {
			t.Fatalf("message %d is %v", i, m)
		}
		for k, p := range m.Properties {
			if string(p.Name) != fmt.Sprint(i) || string(p.Value) != fmt.Sprint(k) {
				t.Fatalf("message %d, property %d: %s=%s", i, k, p.Name, p.Value)
			}
		}
	}
}

// Properties beyond the bound cost no memory, nor do bits of acks beyond those of the
// largest batch.
func TestDeliveryBounds(t *testing.T) {
	many := summed(sized(append(bytesOf(t, headText), bytes.Repeat(bytesOf(t, "2204 0a00 1200"), 8*maxParts)...)))
	if each := allocated(1, func() {
		if _, err := delivered(many).Messages(nil); err == nil {
			t.Error("no error")
		}
	}); each > 4*48*maxParts {
		t.Errorf("%d properties cost %d bytes", 8*maxParts, each)
	}
	acks := func(body []byte) Frame {
		body = append(appendVarint(nil, 1, 1), body...)
		return Frame{Type: TypeMessage, Command: appendNested(appendVarint(nil, 1, uint64(TypeMessage)), 9, func(b []byte) []byte { return append(b, body...) })}
	}
	words := bytes.Repeat([]byte{1}, 1<<20)
	for name, f := range map[string]Frame{
		"packed":     acks(appendBytes(nil, 4, words)),
		"one by one": acks(bytes.Repeat([]byte{4 << 3, 1}, 1<<19)),
	} {
		var d Delivery
		if each := allocated(1, func() {
			if err := f.Delivery(&d); err != nil {
				t.Error(err)
			}
		}); each > 1<<20 || len(d.Left) != maxParts/64 {
			t.Errorf("%s: %d words, %d bytes", name, len(d.Left), each)
		}
	}
}
