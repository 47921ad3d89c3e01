// SPDX-License-Identifier: Apache-2.0

package envelope_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
)

// batch is n payloads with three headers each.
func batch(n, payload int) (records [][]byte, size int) {
	for i := range n {
		records = append(records, envelope.Append(nil, headers(
			"content-type", "application/json", "x-request-id", "4bf92f3577b34da6a3ce929d0e0e4736",
			"partition-key", fmt.Sprintf("customer-%d", i),
		), bytes.Repeat([]byte{byte(i)}, payload)))
		size += len(records[i])
	}
	return records, size
}

// What was handed out stays as it is while more is decoded and its user appends
// to it.
func TestDecoderKeeps(t *testing.T) {
	var d envelope.Decoder
	type kept struct {
		headers core.Headers
		payload []byte
		want    []byte
	}
	var all []kept
	for round := range 20 {
		records, size := batch(round, 40*round)
		records = append(records, []byte("plain"), []byte("rs1:junk"), []byte("rs1:"), []byte("rs2:AAAA"))
		if round%2 == 0 {
			d.Expect(len(records), size)
		}
		for _, r := range records {
			hs, payload, err := d.Decode(r)
			if err != nil {
				t.Fatal(err)
			}
			hs = append(hs, core.Header{Name: "added", Value: []byte("here")})
			for i := range hs {
				hs[i].Value = append(hs[i].Value, "tail"...)
			}
			all = append(all, kept{hs, payload, r})
		}
	}
	for _, k := range all {
		want, payload := reference(k.want)
		want = append(want, core.Header{Name: "added", Value: []byte("here")})
		for i := range want {
			want[i].Value = append(want[i].Value, "tail"...)
		}
		if diff := cmp.Diff(want, k.headers); diff != "" {
			t.Fatal(diff)
		}
		if !bytes.Equal(payload, k.payload) {
			t.Fatalf("payload %q, want %q", k.payload, payload)
		}
	}
}

func TestDecoderMemory(t *testing.T) {
	records, size := batch(256, 512)
	for i := range records {
		if i%4 == 0 {
			records[i] = records[i][4:] // a plain one
		}
	}
	var d envelope.Decoder
	got := testing.AllocsPerRun(100, func() {
		d.Expect(len(records), size)
		for i, r := range records {
			if _, _, err := d.Numbered(r, uint64(100_000+i)); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got > 4 {
		t.Errorf("%v allocations for a batch", got)
	}
}

// What no slab should be taken for leaves none behind.
func TestDecoderLarge(t *testing.T) {
	const size = 8 << 20
	var d envelope.Decoder
	for _, data := range [][]byte{
		append([]byte("rs1:"), bytes.Repeat([]byte("!"), size)...),
		envelope.Append(nil, nil, make([]byte, size)),
	} {
		d.Expect(1, len(data))
		if _, _, err := d.Decode(data); err != nil {
			t.Fatal(err)
		}
	}
	d.Expect(1<<30, 1<<50)
	_, payload, err := d.Decode(envelope.Append(nil, headers("k", "v"), []byte("small")))
	if err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > size/2 {
		t.Errorf("%d bytes in use for a payload of %d", m.HeapAlloc, len(payload))
	}
}

// Foreign names do not stay for ever, whatever their number and length.
func TestDecoderNames(t *testing.T) {
	var d envelope.Decoder
	for i := range 10_000 {
		name := fmt.Sprintf("x-%d-%s", i, strings.Repeat("n", i%100))
		hs, _, err := d.Decode(envelope.Append(nil, headers("a", "1", name, "2", name+":", "3"), nil))
		if err != nil || len(hs) != 3 || hs[0].Name != "a" || hs[1].Name != name || hs[2].Name != name+":" {
			t.Fatalf("%q: %v, %v", name, hs, err)
		}
		hs, _, err = d.Decode(envelope.Append(nil, headers(name, ""), nil))
		if err != nil || len(hs) != 1 || hs[0].Name != name {
			t.Fatalf("%q: %v, %v", name, hs, err)
		}
	}
}

func TestNumbered(t *testing.T) {
	for name, tt := range map[string]struct {
		in, want core.Headers
	}{
		"none":          {nil, headers("stream-sequence", "7")},
		"another":       {headers("k", "v"), headers("k", "v", "stream-sequence", "7")},
		"an old number": {headers("a", "1", "stream-sequence", "3", "b", "2"), headers("a", "1", "stream-sequence", "7", "b", "2")},
		"two, any case": {headers("Stream-Sequence", "3", "b", "2", "STREAM-SEQUENCE", "4"), headers("stream-sequence", "7", "b", "2")},
		"of a length":   {headers("stream_sequence", "3"), headers("stream_sequence", "3", "stream-sequence", "7")},
	} {
		t.Run(name, func(t *testing.T) {
			record := []byte("text")
			if tt.in != nil {
				record = envelope.Append(nil, tt.in, record)
			}
			var d envelope.Decoder
			got, payload, err := d.Numbered(record, 7)
			if err != nil || string(payload) != "text" {
				t.Fatalf("%q, %v", payload, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			without := cmp.Diff(envelope.WithoutSequence(tt.in), envelope.WithoutSequence(got), cmpopts.EquateEmpty())
			if without != "" {
				t.Error(without)
			}
		})
	}
	var many core.Headers
	for range envelope.MaxHeaders + 1 {
		many = append(many, headers("a", "b")...)
	}
	var d envelope.Decoder
	var too *envelope.TooManyError
	if _, _, err := d.Numbered(envelope.Append(nil, many, nil), 7); !errors.As(err, &too) {
		t.Errorf("too many: %v", err)
	}
}

// A decoder that has seen other payloads decodes as the plain way does.
func FuzzDecoder(f *testing.F) {
	envelopes := func(blocks ...string) []byte {
		var all []byte
		for _, b := range blocks {
			all = append(all, b[:4]...)
			all = base64.StdEncoding.AppendEncode(all, append([]byte{0, 0, 0, byte(len(b) - 4)}, b[4:]...))
			all = append(all, 0)
		}
		return all
	}
	f.Add(envelopes("rs1:k: v\nk:w\n: \n", "rs1:k: x\nk: w \n: \n\n", "rs1:k : v\nk:\tw\n\x85: y"))
	f.Add(envelopes("rs1:a: b: c\n", "rs1:a: \u00a0c\n", "rs2:\x00\x00\x00\x01a\x00\x00\x00\x00", "rs1:a:"))
	f.Add([]byte("plain\x00rs1:AAAA\x00rs1:AAAAAA==\x00rs1:AAAAAA==\n\x00rs2:AAAAAQ=="))
	f.Fuzz(func(t *testing.T, data []byte) {
		var d envelope.Decoder
		records := bytes.Split(data, []byte{0})
		d.Expect(len(records), len(data))
		for _, r := range records {
			want, wantPayload := reference(r)
			got, payload, err := d.Decode(r)
			if err != nil {
				t.Fatal(err)
			}
			if cap(got) == len(got) {
				t.Errorf("%q: no room for another header", r)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%q: %s", r, diff)
			}
			if !bytes.Equal(payload, wantPayload) {
				t.Errorf("%q: payload %q, want %q", r, payload, wantPayload)
			}
		}
	})
}

func BenchmarkDecoder(b *testing.B) {
	for _, payload := range []int{0, 512, 16 << 10} {
		records, size := batch(256, payload)
		b.Run(fmt.Sprintf("enveloped %d B", payload), func(b *testing.B) { decodeBatches(b, records, size) })
		for i := range records {
			records[i] = make([]byte, payload)
		}
		b.Run(fmt.Sprintf("plain %d B", payload), func(b *testing.B) { decodeBatches(b, records, payload*len(records)) })
	}
}

func decodeBatches(b *testing.B, records [][]byte, size int) {
	var d envelope.Decoder
	b.SetBytes(int64(size / len(records)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := i % len(records)
		if at == 0 {
			d.Expect(len(records), size)
		}
		if _, _, err := d.Numbered(records[at], uint64(100_000+i)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	hs := headers("content-type", "application/json", "x-request-id", "4bf92f3577b34da6a3ce929d0e0e4736", "partition-key", "customer-1234")
	payload := make([]byte, 512)
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = envelope.Append(dst[:0], hs, payload)
	}
	b.SetBytes(int64(len(dst)))
}
