// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
)

// headers makes a list of name and value in turn.
func headers(pairs ...string) core.Headers {
	var h core.Headers
	for i := 0; i < len(pairs); i += 2 {
		h = append(h, core.Header{Name: pairs[i], Value: []byte(pairs[i+1])})
	}
	return h
}

// D25, S-GEN-97: lookups ignore case, the last one counts.
func TestHeadersGet(t *testing.T) {
	h := headers("X-Tenant", "a", "x-tenant", "b", "x-straße", "ß", "empty", "")
	for _, tt := range []struct {
		name, want string
		ok         bool
	}{
		{"x-tenant", "b", true},
		{"X-TENANT", "b", true},
		{"empty", "", true},
		{"X-straße", "ß", true},
		{"x-STRASSE", "", false},
		{"x-tenan", "", false},
		{"", "", false},
	} {
		got, ok := h.Get(tt.name)
		if string(got) != tt.want || ok != tt.ok {
			t.Errorf("Get(%q) = %q, %t, want %q, %t", tt.name, got, ok, tt.want, tt.ok)
		}
		if v := h.Value(tt.name); v != tt.want {
			t.Errorf("Value(%q) = %q, want %q", tt.name, v, tt.want)
		}
		if h.Has(tt.name) != tt.ok {
			t.Errorf("Has(%q) = %t, want %t", tt.name, !tt.ok, tt.ok)
		}
	}
}

func TestHeadersWithout(t *testing.T) {
	h := headers("a", "1", "B", "2", "a", "3")
	if got := h.Without("c"); &got[0] != &h[0] {
		t.Error("a list with nothing to leave out was copied")
	}
	if d := cmp.Diff(headers("B", "2"), h.Without("A", "x")); d != "" {
		t.Errorf("headers differ (-want +got):\n%s", d)
	}
	if d := cmp.Diff(headers("a", "1", "B", "2", "a", "3"), h); d != "" {
		t.Errorf("the list itself changed (-want +got):\n%s", d)
	}
}

func TestMessageClone(t *testing.T) {
	for _, m := range []core.Message{
		{},
		{Name: "n"},
		{Name: "n", Payload: []byte("p")},
		{Name: "n", Payload: []byte{}, Headers: core.Headers{}},
		{Name: "n", Payload: []byte("pay"), Headers: core.Headers{{Name: "A", Value: []byte("1")}, {Name: "", Value: nil}, {Name: "bc", Value: []byte{}}}},
	} {
		c := m.Clone()
		if d := cmp.Diff(m, c); d != "" {
			t.Errorf("clone differs (-want +got):\n%s", d)
		}
		if m.Size() != c.Size() {
			t.Errorf("size of the clone is %d, want %d", c.Size(), m.Size())
		}
		if d := cmp.Diff(m.Headers, m.Headers.Clone()); d != "" {
			t.Errorf("clone of the headers differs (-want +got):\n%s", d)
		}
		for i := range m.Payload {
			m.Payload[i] = '!'
		}
		for _, h := range m.Headers {
			for i := range h.Value {
				h.Value[i] = '!'
			}
		}
		if bytes.ContainsRune(c.Payload, '!') {
			t.Error("the clone shares the payload")
		}
		for i, h := range c.Headers {
			if bytes.ContainsRune(h.Value, '!') {
				t.Error("the clone shares a header's value")
			}
			// Growing one value must not run into the next.
			c.Headers[i].Value = append(h.Value, "????????"...)
		}
		if bytes.ContainsRune(c.Payload, '?') {
			t.Error("the clone's values overlap")
		}
	}
}

func TestMessageSize(t *testing.T) {
	m := core.Message{Name: "not counted", Headers: headers("ab", "c", "d", ""), Payload: []byte("efg")}
	if got := m.Size(); got != 7 {
		t.Errorf("size is %d, want 7", got)
	}
}

// E-04, S-GEN-20 to 22, 72.
func TestCount(t *testing.T) {
	for _, tt := range []struct {
		name string
		h    core.Headers
		want uint64
		bad  bool
	}{
		{"absent", nil, 0, false},
		{"number", headers(core.CountHeader, "3"), 3, false},
		{"zero", headers(core.CountHeader, "0"), 0, false},
		{"plus sign", headers(core.CountHeader, "+1"), 1, false},
		{"two plus signs", headers(core.CountHeader, "++1"), 0, true},
		{"plus sign alone", headers(core.CountHeader, "+"), 0, true},
		{"leading zeros", headers(core.CountHeader, "000000000000000000000000000001"), 1, false},
		{"plus and zeros", headers(core.CountHeader, "+01"), 1, false},
		{"word", headers(core.CountHeader, "abc"), 0, true},
		{"byte FF", headers(core.CountHeader, "\xff"), 0, true},
		{"negative", headers(core.CountHeader, "-1"), 0, true},
		{"negative zero", headers(core.CountHeader, "-0"), 0, true},
		{"blank before", headers(core.CountHeader, " 1"), 0, true},
		{"blanks around", headers(core.CountHeader, " 2 "), 0, true},
		{"fraction", headers(core.CountHeader, "1.5"), 0, true},
		{"underscore", headers(core.CountHeader, "1_0"), 0, true},
		{"hexadecimal", headers(core.CountHeader, "0x1"), 0, true},
		{"other digits", headers(core.CountHeader, "٣"), 0, true},
		{"largest", headers(core.CountHeader, "18446744073709551615"), 1<<64 - 1, false},
		{"one too many", headers(core.CountHeader, "18446744073709551616"), 0, true},
		{"far too many", headers(core.CountHeader, "99999999999999999999999"), 0, true},
		{"empty", headers(core.CountHeader, ""), 0, true},
		{"twice, the last counts", headers(core.CountHeader, "1", core.CountHeader, "5"), 5, false},
		{"twice, the last is bad", headers(core.CountHeader, "1", core.CountHeader, "x"), 0, true},
		{"upper case", headers("X-RUSTSTREAM-RETRY-COUNT", "2"), 2, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, bad := tt.h.Count()
			if got != tt.want || bad != tt.bad {
				t.Errorf("Count() = %d, %t, want %d, %t", got, bad, tt.want, tt.bad)
			}
		})
	}
}

func TestForCopy(t *testing.T) {
	for _, tt := range []struct {
		name    string
		h, want core.Headers
	}{
		{"appended", headers("a", "1"), headers("a", "1", core.CountHeader, "7")},
		{"replaced in its place", headers("a", "1", core.CountHeader, "6", "b", "2"), headers("a", "1", core.CountHeader, "7", "b", "2")},
		{"any case, all of them, the first place", headers("X-Ruststream-Retry-Count", "1", "a", "1", core.CountHeader, "6"), headers(core.CountHeader, "7", "a", "1")},
		{"journal taken off", headers("X-Longshore-Journal", "r1", "a", "1"), headers("a", "1", core.CountHeader, "7")},
		{"nothing else stripped, repeats and case kept", headers("X-Tenant", "a", "x-tenant", "b", "reply-to", "r", "stream-sequence", "4", "x-longshore-reason", "old"),
			headers("X-Tenant", "a", "x-tenant", "b", "reply-to", "r", "stream-sequence", "4", "x-longshore-reason", "old", core.CountHeader, "7")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := tt.h.Clone()
			if d := cmp.Diff(tt.want, tt.h.ForCopy(nil, 7)); d != "" {
				t.Errorf("headers differ (-want +got):\n%s", d)
			}
			if d := cmp.Diff(before, tt.h); d != "" {
				t.Errorf("the delivery's own changed (-want +got):\n%s", d)
			}
		})
	}
}

func TestForForward(t *testing.T) {
	h := headers("a", "1", core.CountHeader, "6", "X-Longshore-Reason", "x", "x-longshore-journal", "r", "x-longshor", "kept", "a", "2")
	if d := cmp.Diff(headers("a", "1", "x-longshor", "kept", "a", "2"), h.ForForward(nil)); d != "" {
		t.Errorf("headers differ (-want +got):\n%s", d)
	}
}

func FuzzCount(f *testing.F) {
	for _, s := range []string{"", "1", "+1", "-1", "18446744073709551615", "18446744073709551616", " 1", "\xff", "٣"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, v []byte) {
		h := core.Headers{{Name: core.CountHeader, Value: v}}
		n, bad := h.Count()
		if bad && n != 0 {
			t.Fatalf("%q is bad and %d", v, n)
		}
		// What a copy carries reads back as what was written.
		again, bad := h.ForCopy(nil, n).Count()
		if again != n || bad {
			t.Fatalf("%q: %d reads back as %d, %t", v, n, again, bad)
		}
	})
}
