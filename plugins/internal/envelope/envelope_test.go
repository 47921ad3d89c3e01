// SPDX-License-Identifier: Apache-2.0

package envelope_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
)

func headers(pairs ...string) core.Headers {
	var hs core.Headers
	for i := 0; i < len(pairs); i += 2 {
		hs = append(hs, core.Header{Name: pairs[i], Value: []byte(pairs[i+1])})
	}
	return hs
}

// The vectors of reference 3.2 and of the samples, both ways.
func TestVectors(t *testing.T) {
	for _, tt := range []struct {
		name    string
		headers core.Headers
		payload string
		want    string
	}{
		{"a header", headers("x-tenant", "acme"), `{"id":7}`, "rs1:AAAAD3gtdGVuYW50OiBhY21lCnsiaWQiOjd9"},
		{"first retry copy", headers("stream-sequence", "1", "x-ruststream-retry-count", "1"), `{"id":7}`,
			"rs1:AAAAL3N0cmVhbS1zZXF1ZW5jZTogMQp4LXJ1c3RzdHJlYW0tcmV0cnktY291bnQ6IDEKeyJpZCI6N30="},
		{"blanks and a line break", nil, " padded\n", "rs1:AAAAACBwYWRkZWQK"},
		{"a value with a blank", headers("x-pad", " v"), `{"id":7}`, "rs2:AAAADwAAAAV4LXBhZAAAAAIgdnsiaWQiOjd9"},
		{"sample: with header", headers("x-tenant", "acme"), "with header", "rs1:AAAAD3gtdGVuYW50OiBhY21lCndpdGggaGVhZGVy"},
		{"sample: padded", nil, " padded", "rs1:AAAAACBwYWRkZWQ="},
		{"sample: two lines", nil, "two\nlines", "rs1:AAAAAHR3bwpsaW5lcw=="},
		{"sample: like an envelope", nil, "rs1:x", "rs1:AAAAAHJzMTp4"},
		{"sample: a value of two lines", headers("x-note", "line one\nline two"), "multi-line header value",
			"rs2:AAAAHwAAAAZ4LW5vdGUAAAARbGluZSBvbmUKbGluZSB0d29tdWx0aS1saW5lIGhlYWRlciB2YWx1ZQ=="},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(envelope.Append([]byte("<"), tt.headers, []byte(tt.payload))); got != "<"+tt.want {
				t.Errorf("encoded\n%s, want\n%s", got, "<"+tt.want)
			}
			if got := envelope.Len(tt.headers, []byte(tt.payload)); got != len(tt.want) {
				t.Errorf("length %d, want %d", got, len(tt.want))
			}
			hs, payload, err := envelope.Decode([]byte(tt.want))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.headers, hs); diff != "" {
				t.Error(diff)
			}
			if string(payload) != tt.payload {
				t.Errorf("payload %q, want %q", payload, tt.payload)
			}
		})
	}
}

func TestNeeded(t *testing.T) {
	for _, tt := range []struct {
		payload       string
		headers       core.Headers
		record, aLine bool
	}{
		{"hello", nil, false, false},
		{"", nil, false, false},
		{"a [b] | c", nil, false, false},
		{"with\rreturn", nil, false, false},
		{"nul \x00 inside", nil, false, false},
		{"hello", headers("k", "v"), true, true},
		{"rs1:", nil, true, true},
		{"rs2:abc", nil, true, true},
		{"rs3:abc", nil, false, false},
		{" lead", nil, false, true},
		{"trail\t", nil, false, true},
		{"trail\r", nil, false, true},
		{"trail\u00a0", nil, false, true},
		{"two\nlines", nil, false, true},
		{"not \xff UTF-8", nil, false, true},
	} {
		if got := envelope.Needed(tt.headers, []byte(tt.payload)); got != tt.record {
			t.Errorf("%q in a record: %v, want %v", tt.payload, got, tt.record)
		}
		if got := envelope.NeededInLine(tt.headers, []byte(tt.payload)); got != tt.aLine {
			t.Errorf("%q in a line: %v, want %v", tt.payload, got, tt.aLine)
		}
	}
}

// A payload that begins like an envelope and is none is delivered as it is.
func TestNotDecodable(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	for name, data := range map[string]string{
		"no base64":               "rs1:!!!",
		"no padding":              "rs1:AAAAAHg",
		"bits left over":          "rs1:AAAAAHh=",
		"a carriage return":       "rs1:AAAAAHR3bwpsaW5lcw==\r",
		"shorter than a length":   "rs1:" + b64([]byte{0, 0}),
		"block beyond the end":    "rs1:" + b64([]byte{0, 0, 0, 9, 'x'}),
		"rs2 with half a length":  "rs2:" + b64([]byte{0, 0, 0, 2, 0, 0}),
		"rs2 name beyond the end": "rs2:" + b64([]byte{0, 0, 0, 5, 0, 0, 0, 9, 'n'}),
		"rs2 without a value":     "rs2:" + b64([]byte{0, 0, 0, 5, 0, 0, 0, 1, 'n'}),
		"nothing":                 "",
		"another text":            "rs9:AAAA",
	} {
		t.Run(name, func(t *testing.T) {
			hs, payload, err := envelope.Decode([]byte(data))
			if err != nil || hs != nil || string(payload) != data {
				t.Errorf("got %v, %q, %v", hs, payload, err)
			}
		})
	}
}

// The block of rs1 is read leniently, as the reference reads it.
func TestLenientLines(t *testing.T) {
	block := "K:v\nk :  w \n\nno colon\r\nlast: one"
	data := "rs1:" + base64.StdEncoding.EncodeToString(append([]byte{0, 0, 0, byte(len(block))}, block+"payload"...))
	hs, payload, err := envelope.Decode([]byte(data))
	if err != nil || string(payload) != "payload" {
		t.Fatalf("payload %q, %v", payload, err)
	}
	if diff := cmp.Diff(headers("K", "v", "k", "w", "last", "one"), hs); diff != "" {
		t.Error(diff)
	}
}

func TestHeaderLimit(t *testing.T) {
	for name, hs := range map[string]core.Headers{"lines": headers("a", "b"), "blocks": headers("a", " b")} {
		t.Run(name, func(t *testing.T) {
			var many core.Headers
			for range envelope.MaxHeaders {
				many = append(many, hs...)
			}
			got, _, err := envelope.Decode(envelope.Append(nil, many, nil))
			if err != nil || len(got) != len(many) {
				t.Fatalf("at the limit: %d headers, %v", len(got), err)
			}
			var too *envelope.TooManyError
			if _, _, err := envelope.Decode(envelope.Append(nil, append(many, hs...), nil)); !errors.As(err, &too) {
				t.Errorf("above it: %v", err)
			}
		})
	}
}

// seeds are the payloads of the samples.
func seeds(f *testing.F) {
	f.Helper()
	data, err := os.ReadFile("testdata/stdio.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		_, payload, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "] ")
		f.Add([]byte(payload))
	}
	f.Add([]byte("rs2:AAAAHwAAAAZ4LW5vdGUAAAARbGluZSBvbmUKbGluZSB0d29tdWx0aS1saW5lIGhlYWRlciB2YWx1ZQ=="))
}

// What is decoded is encoded to something that decodes to the same, and within
// the sizes that are promised.
func FuzzDecode(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		hs, payload, err := envelope.Decode(data)
		if err != nil {
			return
		}
		if len(payload) > len(data) {
			t.Fatalf("payload of %d bytes out of %d", len(payload), len(data))
		}
		if !envelope.Needed(hs, payload) {
			return // the payload itself travels
		}
		text := envelope.Append(nil, hs, payload)
		if len(text) != envelope.Len(hs, payload) {
			t.Errorf("%d bytes, promised %d", len(text), envelope.Len(hs, payload))
		}
		again, same, err := envelope.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(hs, again); diff != "" {
			t.Error(diff)
		}
		if !bytes.Equal(payload, same) {
			t.Errorf("payload %q, then %q", payload, same)
		}
	})
}

// Any message survives its envelope, and an envelope survives a line.
func FuzzEncode(f *testing.F) {
	f.Add("x-tenant", []byte("acme"), "k", []byte(" v"), []byte("payload"))
	f.Add("", []byte{}, ":", []byte("\r\n"), []byte("rs1:"))
	f.Fuzz(func(t *testing.T, n1 string, v1 []byte, n2 string, v2, payload []byte) {
		want := core.Headers{{Name: n1, Value: v1}, {Name: n2, Value: v2}}
		text := envelope.Append(nil, want, payload)
		if envelope.NeededInLine(nil, text[4:]) || bytes.ContainsAny(text, "\r\n") {
			t.Errorf("envelope %q does not survive a line", text)
		}
		got, body, err := envelope.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if got[i].Name != want[i].Name || !bytes.Equal(got[i].Value, want[i].Value) {
				t.Errorf("header %d: %q, want %q", i, got[i], want[i])
			}
		}
		if !bytes.Equal(body, payload) {
			t.Errorf("payload %q, want %q", body, payload)
		}
	})
}
