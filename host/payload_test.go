// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/longshore-go/longshore/core"
)

type order struct {
	ID int `json:"id"`
}

// typed returns a message with a content type; "" is none.
func typed(contentType string, payload []byte) core.Message {
	m := core.Message{Name: "orders", Payload: payload}
	if contentType != "" {
		m.Headers = core.Headers{{Name: "Content-Type", Value: []byte(contentType)}}
	}
	return m
}

// read decodes a message as T.
func read[T any](m core.Message) (T, error) {
	var v T
	err := decode(nil, "", &m, &v)
	return v, err
}

func TestDecodeJSON(t *testing.T) {
	for name, c := range map[string]struct {
		contentType, payload string
		wrong                string // a part of the error; "" = none
	}{
		"by default":                   {"", `{"id":7}`, ""},
		"as the header says":           {"application/json; charset=utf-8", `{"id":7}`, ""},
		"of a kind":                    {"application/vnd.shop+json", `{"id":7}`, ""},
		"not finished (E-01)":          {"", `{`, "decode JSON"},
		"empty (E-01)":                 {"", ``, "decode JSON"},
		"of another type (E-01)":       {"", `{"id":"x"}`, "decode JSON"},
		"with something behind it":     {"", `{"id":7} x`, "decode JSON"},
		"protobuf for a plain struct":  {"application/protobuf", "\x08\x07", "no protobuf message"},
		"a content type without codec": {"text/csv", `7`, "no codec"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read[order](typed(c.contentType, []byte(c.payload)))
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Fatalf("got error %v, want one with %q", err, c.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(order{7}, got); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeProtobuf(t *testing.T) {
	want := wrapperspb.String("seven")
	binary, err := proto.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]core.Message{
		"by default":       typed("", binary),
		"as it says":       typed("application/x-protobuf", binary),
		"as JSON, it says": typed("application/json", text),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read[*wrapperspb.StringValue](m)
			if err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(want, got) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
	if _, err := read[*wrapperspb.StringValue](typed("text/plain", binary)); err == nil {
		t.Error("a content type without codec was decoded")
	}
	if _, err := read[*wrapperspb.StringValue](typed("", []byte{0xff})); err == nil {
		t.Error("rubbish was decoded")
	}
}

func TestDecodeRaw(t *testing.T) {
	m := typed("image/png", []byte("\x89PNG"))
	if got, err := read[[]byte](m); err != nil || string(got) != "\x89PNG" {
		t.Errorf("got %q, %v", got, err)
	}
	got, err := read[core.Message](m)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, got); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestEncode(t *testing.T) {
	value := wrapperspb.String("seven")
	binary, err := proto.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, payload []byte, contentType string, err error, wantPayload, wantType string) {
		t.Helper()
		if err != nil || string(payload) != wantPayload || contentType != wantType {
			t.Errorf("%s: got %q, %q, %v; want %q, %q", name, payload, contentType, err, wantPayload, wantType)
		}
	}
	p, _, ct, err := encode(nil, order{7}, "")
	check("JSON adds no header", p, ct, err, `{"id":7}`, "")
	p, _, ct, err = encode(nil, order{7}, "application/json")
	check("JSON on request", p, ct, err, `{"id":7}`, "application/json")
	p, _, ct, err = encode(nil, value, "")
	check("protobuf says so", p, ct, err, string(binary), typeProtobuf)
	p, _, ct, err = encode(nil, value, "application/json")
	check("protobuf as JSON", p, ct, err, `"seven"`, "application/json")
	p, _, ct, err = encode(nil, []byte("x"), "")
	check("raw", p, ct, err, "x", "")
	if _, _, _, err := encode(nil, order{7}, "text/csv"); err == nil {
		t.Error("a struct was encoded as CSV")
	}
	if _, _, _, err := encode(nil, value, "text/csv"); err == nil {
		t.Error("a protobuf message was encoded as CSV")
	}
	if _, _, _, err := encode(nil, func() {}, ""); err == nil {
		t.Error("a function was encoded")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("application/json", []byte(`{"id":7}`))
	f.Add("application/protobuf; x=y", []byte{0x0a, 0x01, 'x'})
	f.Add(" ;+json", []byte{0xff})
	f.Fuzz(func(t *testing.T, contentType string, payload []byte) {
		m := typed(contentType, payload)
		_, _ = read[order](m)
		_, _ = read[*wrapperspb.StringValue](m)
		if raw, err := read[[]byte](m); err != nil || string(raw) != string(payload) {
			t.Errorf("raw: got %q, %v", raw, err)
		}
	})
}

func TestForwardedHeaders(t *testing.T) {
	for name, c := range map[string]struct{ in, want core.Headers }{
		"nothing": {nil, nil},
		"kept": {
			core.Headers{{Name: "X-Tenant", Value: []byte("a")}, {Name: "x-tenant", Value: []byte("b")}},
			core.Headers{{Name: "X-Tenant", Value: []byte("a")}, {Name: "x-tenant", Value: []byte("b")}},
		},
		"the runtime's own are dropped": {
			core.Headers{
				{Name: "a"}, {Name: "X-RustStream-Retry-Count", Value: []byte("2")}, {Name: "b"},
				{Name: "X-Longshore-Error"}, {Name: "x-longshore-"}, {Name: "x-longshor"},
			},
			core.Headers{{Name: "a"}, {Name: "b"}, {Name: "x-longshor"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := append(core.Headers(nil), c.in...)
			if diff := cmp.Diff(c.want, forwarded(c.in)); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, c.in); diff != "" {
				t.Errorf("the delivery's own headers changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPanicErrorUnwraps(t *testing.T) {
	cause := errors.New("why")
	if !errors.Is(&PanicError{Value: cause}, cause) {
		t.Error("an error that was thrown is hidden")
	}
	if (&PanicError{Value: 7}).Unwrap() != nil {
		t.Error("7 unwraps to an error")
	}
}
