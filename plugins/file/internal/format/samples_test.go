// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/plugins/internal/envelope"
)

func sample(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../testdata/samples", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// records reads a whole file that is sound.
func records(t testing.TB, file []byte) (Header, []Record) {
	t.Helper()
	h, err := ParseHeader(file)
	if err != nil {
		t.Fatal(err)
	}
	p := Parser{Interval: h.Interval}
	var out []Record
	for at := HeaderSize; at < len(file); {
		var r Record
		n, err := p.Next(file[at:], int64(at), &r)
		if err != nil {
			t.Fatalf("at %d: %v", at, err)
		}
		out = append(out, r)
		at += n
	}
	return h, out
}

// text shows a record as the tests want it: key, sequence, headers, payload.
func text(t *testing.T, r Record) string {
	t.Helper()
	headers, payload, err := envelope.Decode(r.Payload)
	if err != nil {
		t.Fatal(err)
	}
	s := fmt.Sprintf("%s %d ", r.Key, r.Sequence)
	for _, h := range headers {
		s += fmt.Sprintf("[%s: %s] ", h.Name, h.Value)
	}
	return s + string(payload)
}

func TestSamples(t *testing.T) {
	const prime = PrimeKey + " 1 1"
	sequence := 0
	long := func(name string, number int, fill string) string {
		sequence++
		return fmt.Sprintf("orders %d %s%d-%s", sequence, name, number, fill)
	}
	beacons := []string{prime}
	for i := range 12 {
		beacons = append(beacons, long("m", i, strings.Repeat("y", 200)))
	}
	beacons = append(beacons, "other 1 other key")
	for i := range 5 {
		beacons = append(beacons, long("n", i, strings.Repeat("z", 300)))
	}
	for _, test := range []struct {
		file string
		want []string
	}{
		{"two-messages.ss", []string{prime, "orders 1 hello 0", "orders 2 hello 1"}},
		{"with-headers.ss", []string{
			prime, "orders 1 plain",
			"orders 2 [x-tenant: acme] [content-type: application/json] with headers",
			"orders 3 [x-note: line one\nline two] multi-line header value",
			"orders 4 rs1:looks like an envelope",
		}},
		{"retries-and-dead-letter.ss", []string{
			prime, "orders 1 [x-tenant: acme] job",
			"orders 2 [x-tenant: acme] [stream-sequence: 1] [x-ruststream-retry-count: 1] job",
			"orders 3 [x-tenant: acme] [stream-sequence: 2] [x-ruststream-retry-count: 2] job",
			"orders.dead 1 [x-tenant: acme] [stream-sequence: 3] [x-ruststream-retry-count: 3] job",
		}},
		{"eos-then-append.ss", []string{prime, "orders 1 last", EndKey + " 0 EOS", "orders 2 after eos"}},
		{"with-beacons.ss", beacons},
	} {
		t.Run(test.file, func(t *testing.T) {
			file := sample(t, test.file)
			h, recs := records(t, file)
			if h.Name != test.file && test.file != "eos-then-append.ss" && test.file != "retries-and-dead-letter.ss" {
				t.Errorf("name in the header: got %q, want %q", h.Name, test.file)
			}
			var got []string
			for i := range recs {
				got = append(got, text(t, recs[i]))
			}
			if diff := cmp.Diff(got, test.want); diff != "" {
				t.Errorf("got -, want +:\n%s", diff)
			}
			again := h.Append(nil)
			for i := range recs {
				again = appendAgain(t, again, file, &recs[i])
			}
			if !bytes.Equal(again, file) {
				t.Error("written again, the file has other bytes")
			}
		})
	}
}

// appendAgain appends a record with the beacons that cut it in file.
func appendAgain(t *testing.T, dst, file []byte, r *Record) []byte {
	t.Helper()
	rest := AppendRecord(nil, Head{Key: string(r.Key), Shard: r.Shard, Sequence: r.Sequence, Time: r.Time}, r.Payload)
	for h, err := ParseHeader(file); len(rest) > 0; {
		if err != nil {
			t.Fatal(err)
		}
		n := min(len(rest), int(h.Interval)-len(dst)%int(h.Interval))
		dst, rest = append(dst, rest[:n]...), rest[n:]
		if len(dst)%int(h.Interval) != 0 {
			continue
		}
		b, _, err := ParseBeacon(file[len(dst):])
		if err != nil {
			t.Fatal(err)
		}
		if int(b.Remaining) != len(rest) {
			t.Errorf("beacon at %d: %d bytes remain, want %d", len(dst), b.Remaining, len(rest))
		}
		dst = AppendBeacon(dst, b)
	}
	return dst
}

// TestSampleBeacons looks at the markers: one a beacon, in turns; running
// checksums that begin anew with the last record where the file was opened
// again.
func TestSampleBeacons(t *testing.T) {
	file := sample(t, "with-beacons.ss")
	_, recs := records(t, file)
	type seen struct {
		Key      string
		Sequence uint64
		Checksum uint16
	}
	var got []seen
	for at := 1024; at < len(file); at += 1024 {
		b, _, err := ParseBeacon(file[at:])
		if err != nil {
			t.Fatalf("at %d: %v", at, err)
		}
		for _, m := range b.Markers {
			got = append(got, seen{m.Key, m.Sequence, m.Checksum})
		}
	}
	running := map[string]uint16{}
	byNumber := map[uint64]uint16{}
	for i := range recs {
		key := string(recs[i].Key)
		if _, ok := running[key]; !ok {
			running[key] = NoChecksum
		}
		running[key] = Running(running[key], recs[i].Checksum)
		if key == "orders" {
			byNumber[recs[i].Sequence] = running[key]
		}
	}
	want := []seen{
		{"orders", 4, byNumber[4]},
		{PrimeKey, 1, running[PrimeKey]},
		{"orders", 12, byNumber[12]},
		{"orders", 15, 0xcb2f},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
	if byNumber[15] != 0xebe7 {
		t.Errorf("true running checksum of record 15: got %04x, want ebe7", byNumber[15])
	}
}
