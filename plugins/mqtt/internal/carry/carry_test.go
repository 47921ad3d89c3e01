// SPDX-License-Identifier: Apache-2.0

package carry

import (
	"bytes"
	"math"
	"testing"
	"time"
)

func TestCarry(t *testing.T) {
	i := NewInstance()
	if i == NewInstance() {
		t.Fatal("two instances are alike")
	}
	for name, c := range map[string]Carry{
		"plain":   {Instance: i, Link: 1, ID: 7, QoS: 1},
		"zero":    {},
		"expires": {Instance: i, Link: 3, ID: 256, QoS: 2, Deadline: 1_796_000_000_123},
		"largest": {Instance: i, Link: math.MaxUint64, ID: math.MaxUint16, QoS: 2, Deadline: math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			b := Append(nil, &c)
			if len(b) > Size {
				t.Errorf("%d bytes, want at most %d", len(b), Size)
			}
			if got, ok := Parse(b); !ok || got != c {
				t.Errorf("got %+v and %v, want %+v", got, ok, c)
			}
			for n := range b {
				if got, ok := Parse(b[:n]); ok {
					t.Errorf("%d of %d bytes are read as %+v", n, len(b), got)
				}
			}
			if _, ok := Parse(append(bytes.Clone(b), 0)); ok {
				t.Error("a byte too many is read")
			}
			for _, at := range []int{0, atQoS} {
				odd := bytes.Clone(b)
				odd[at] = 9
				if _, ok := Parse(odd); ok {
					t.Errorf("byte %d of another kind is read", at)
				}
			}
		})
	}
}

func TestExpiry(t *testing.T) {
	now := time.UnixMilli(1_796_000_000_500)
	for name, tt := range map[string]struct {
		deadline int64
		want     uint32
		ok       bool
	}{
		"never":        {0, 0, false},
		"long ago":     {1, 0, true},
		"now":          {now.UnixMilli(), 0, true},
		"rounded up":   {now.UnixMilli() + 1, 1, true},
		"a second":     {now.UnixMilli() + 1000, 1, true},
		"and some":     {now.UnixMilli() + 1001, 2, true},
		"beyond a u32": {math.MaxInt64, math.MaxUint32, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := (&Carry{Deadline: tt.deadline}).Expiry(now); got != tt.want || ok != tt.ok {
				t.Errorf("got %d and %v, want %d and %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	i := Instance{1, 2, 3, 4, 5, 6, 7, 8}
	f.Add(Append(nil, &Carry{Instance: i, Link: 7, ID: 1, QoS: 1}))
	f.Add(Append(nil, &Carry{Instance: i, Link: 300, ID: 2, QoS: 2, Deadline: 1_796_000_000_123}))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, ok := Parse(b)
		if !ok {
			return
		}
		if again, ok := Parse(Append(nil, &c)); !ok || again != c {
			t.Errorf("%x is read as %+v, written and read again as %+v", b, c, again)
		}
	})
}
