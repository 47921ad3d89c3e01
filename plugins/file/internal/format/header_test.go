// SPDX-License-Identifier: Apache-2.0

package format

import (
	"errors"
	"strings"
	"testing"
)

func TestHeaderDamage(t *testing.T) {
	sound := Header{Name: "orders.ss", Created: born, Interval: 1024}.Append(nil)
	with := func(at int, b ...byte) []byte {
		out := append([]byte(nil), sound...)
		copy(out[at:], b)
		return out
	}
	for _, test := range []struct {
		name   string
		in     []byte
		offset int
		reason string
	}{
		{"nothing", nil, 0, "it ends there"},
		{"half a magic", sound[:1], 1, "it ends there"},
		{"text", []byte("a text"), 0, `begins with "a ", not with "Ss"`},
		{"short", sound[:127], 127, "a header has 128 bytes"},
		{"magic", with(1, 'S'), 0, `begins with "SS"`},
		{"version", with(2, 2), 2, "version 2, only 1 is known"},
		{"name too long", with(3, 112), 3, "a name of 112 bytes, at most 111 fit"},
		{"interval 0", with(21, 0, 0, 0, 0), 21, "beacon interval 0 is no positive multiple of 1024"},
		{"interval 1000", with(21, 0, 0, 3, 0xe8), 21, "beacon interval 1000"},
		{"closing byte", with(127, 0), 127, "it closes with 00"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseHeader(test.in)
			bad, ok := errors.AsType[*HeaderError](err)
			if !ok || bad.Offset != test.offset || !strings.Contains(bad.Error(), test.reason) {
				t.Errorf("got error %v, want offset %d: %s", err, test.offset, test.reason)
			}
		})
	}
}

func TestHeaderNames(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"as long as possible", strings.Repeat("a", 111), strings.Repeat("a", 111)},
		{"longer", strings.Repeat("a", 112), strings.Repeat("a", 111)},
		{"a character split", strings.Repeat("a", 110) + "é", strings.Repeat("a", 110)},
		{"a wide character split", strings.Repeat("a", 108) + "🚢", strings.Repeat("a", 108)},
		{"no characters", strings.Repeat("\x80", 200), strings.Repeat("\x80", 108)},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := Header{Name: test.in, Created: born, Interval: 1024}.Append([]byte("before"))
			if len(b) != len("before")+HeaderSize {
				t.Fatalf("%d bytes", len(b))
			}
			h, err := ParseHeader(b[len("before"):])
			if err != nil || h.Name != test.want {
				t.Errorf("got %q and error %v, want %q", h.Name, err, test.want)
			}
		})
	}
}
