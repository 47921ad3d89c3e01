// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
)

var (
	bytesTo = core.Publishing{Headers: core.HeadersNativeBytes, Repeats: true}
	textTo  = core.Publishing{Headers: core.HeadersNativeText, Repeats: true}
)

// D7, D27, S-GEN-93.
func TestForDeadLetter(t *testing.T) {
	at := time.Date(2026, 11, 30, 8, 22, 1, 5e8, time.FixedZone("x", 3600))
	h := headers("a", "1", "X-Longshore-Reason", "an older one", "x-longshore-stack", "an older one", "x-longshore-journal", "r")
	cause := &core.DeadLetter{
		Endpoint: "in", Subscription: "orders", Attempts: 3, Time: at, FirstFailure: at.Add(-time.Minute),
		Error: "*order.Error", Reason: "  no such\n\tthing\x00 here ",
	}
	want := headers("a", "1", core.CountHeader, "3",
		"x-longshore-endpoint", "in",
		"x-longshore-subscription", "orders",
		"x-longshore-attempts", "3",
		"x-longshore-time", "2026-11-30T07:22:01Z",
		"x-longshore-error", "*order.Error",
		"x-longshore-reason", "no such thing here",
		"x-longshore-first-failure", "2026-11-30T07:21:01Z")
	if d := cmp.Diff(want, h.ForDeadLetter(3, cause, bytesTo, 0)); d != "" {
		t.Errorf("headers differ (-want +got):\n%s", d)
	}
	// Without a cause, as on enveloped destinations, what the message had stays.
	plain := headers("a", "1", "X-Longshore-Reason", "an older one", "x-longshore-stack", "an older one", core.CountHeader, "1")
	if d := cmp.Diff(plain, h.ForDeadLetter(1, nil, bytesTo, 0)); d != "" {
		t.Errorf("headers without a cause differ (-want +got):\n%s", d)
	}
	if got := h.ForDeadLetter(1, cause, core.Publishing{}, 0); len(got) > 0 {
		t.Errorf("a destination without headers gets %v", got)
	}
}

func TestForDeadLetterCuts(t *testing.T) {
	long := strings.Repeat("ü", 5000)
	got := core.Headers(nil).ForDeadLetter(1, &core.DeadLetter{Endpoint: long, Error: long, Reason: long, Stack: "goroutine 1 [running]:\nmain.main()\n\t" + long}, bytesTo, 0)
	for name, limit := range map[string]int{
		core.EndpointHeader: core.MaxNameBytes, core.ErrorHeader: core.MaxNameBytes,
		core.ReasonHeader: core.MaxReasonBytes, core.StackHeader: core.MaxStackBytes,
	} {
		v := got.Value(name)
		if len(v) > limit || len(v) < limit-4 || !strings.HasSuffix(v, "...") || !utf8.ValidString(v) {
			t.Errorf("%s has %d bytes, want just %d, whole and marked as cut", name, len(v), limit)
		}
	}
	if v := got.Value(core.StackHeader); !strings.HasPrefix(v, "goroutine 1 [running]: main.main() ü") {
		t.Errorf("the stack begins with %.40q", v)
	}
}

// A dead letter too large for its destination loses the stack first, then the
// reason, then the rest of the cause. The protocol's own limit is one as well.
func TestForDeadLetterFitsItsDestination(t *testing.T) {
	const protocol, payload = 64 << 20, 10
	cause := &core.DeadLetter{Error: "e", Reason: "why", Stack: strings.Repeat("s", 100)}
	full := core.Headers(nil).ForDeadLetter(1, cause, bytesTo, payload).Size()
	least := core.Headers(nil).ForDeadLetter(1, nil, bytesTo, payload).Size()
	for _, tt := range []struct {
		name                 string
		limit, payload       int
		stack, reason, cause bool
	}{
		{"all fits", full + payload, payload, true, true, true},
		{"no stack", full + payload - 1, payload, false, true, true},
		{"no reason", full + payload - 130, payload, false, false, true},
		{"no cause", least + payload, payload, false, false, false},
		{"nothing helps", 1, payload, false, false, false},
		{"just within the protocol", 0, protocol - full, true, true, true},
		{"no stack within the protocol", 0, protocol - full + 1, false, true, true},
		{"no cause within the protocol", 0, protocol - least, false, false, false},
		{"a limit beyond the protocol's", protocol + full, protocol - least, false, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			to := bytesTo
			to.MaxBytes = int64(tt.limit)
			got := core.Headers(nil).ForDeadLetter(1, cause, to, tt.payload)
			if got.Has(core.StackHeader) != tt.stack || got.Has(core.ReasonHeader) != tt.reason || got.Has(core.ErrorHeader) != tt.cause {
				t.Errorf("got %v", got)
			}
			if !got.Has(core.CountHeader) {
				t.Error("the count is gone")
			}
		})
	}
}

// D26, S-FIL-26, S-ZMQ-35, S-PUL-32, S-PUL-39.
func TestForDeadLetterEncodes(t *testing.T) {
	once := textTo
	once.Repeats = false
	few := textTo
	few.MaxHeaders = 3
	for _, tt := range []struct {
		name    string
		h       core.Headers
		to      core.Publishing
		want    core.Headers // without the count
		encoded core.Headers
	}{
		{"bytes on a text destination", headers("a", "1", "x-bin", "\x00\xff"), textTo,
			headers("a", "1", "x-longshore-headers", "AAAABXgtYmluAAAAAgD/"), headers("x-bin", "\x00\xff")},
		{"bytes on a bytes destination", headers("x-bin", "\x00\xff"), bytesTo, headers("x-bin", "\x00\xff"), nil},
		{"names and values that break a line", headers("a:b", "1", "c", "2\n3", "", "4", " d", "5", "e", " 6", "f", "7"), textTo,
			headers("f", "7"), headers("a:b", "1", "c", "2\n3", "", "4", " d", "5", "e", " 6")},
		{"repeats", headers("a", "1", "b", "2", "A", "3"), once, headers("b", "2", "A", "3"), headers("a", "1")},
		{"enveloped takes all", headers("a:b", "1\n", "a:b", "\xff"), core.Publishing{Headers: core.HeadersEnveloped, Repeats: true}, headers("a:b", "1\n", "a:b", "\xff"), nil},
		{"too many", headers("a", "1", "b", "2", "c", "3"), few, headers("a", "1"), headers("c", "3", "b", "2")},
		{"an earlier hop's, nothing new", headers("X-Longshore-Headers", headers("x", "\xff").Encode()), textTo,
			headers("X-Longshore-Headers", headers("x", "\xff").Encode()), nil},
		{"an earlier hop's joins", headers("X-Longshore-Headers", headers("x", "\xff").Encode(), "y", "\xfe"), textTo,
			nil, headers("x", "\xff", "y", "\xfe")},
		{"an unreadable earlier one is replaced", headers("X-Longshore-Headers", "?", "y", "\xfe"), textTo, nil, headers("y", "\xfe")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.h.ForDeadLetter(1, nil, tt.to, 0).Without(core.CountHeader)
			if tt.encoded != nil {
				v, _ := got.Get(core.EncodedHeader)
				list, err := core.DecodeHeaders(string(v))
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(tt.encoded, list); d != "" {
					t.Errorf("encoded headers differ (-want +got):\n%s", d)
				}
				if !tt.want.Has(core.EncodedHeader) {
					got = got.Without(core.EncodedHeader)
				}
			}
			if d := cmp.Diff(append(core.Headers{}, tt.want...), append(core.Headers{}, got...)); d != "" {
				t.Errorf("headers differ (-want +got):\n%s", d)
			}
		})
	}
}

// A dead letter holds nothing that its destination cannot carry, and nothing
// of the message is lost.
func TestForDeadLetterLosesNoHeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pair := rapid.Custom(func(t *rapid.T) core.Header {
			return core.Header{
				Name:  rapid.OneOf(rapid.SampledFrom([]string{"a", "A", "b:", "x-longshore-reason"}), rapid.String()).Draw(t, "name"),
				Value: rapid.SliceOf(rapid.Byte()).Draw(t, "value"),
			}
		})
		h := core.Headers(rapid.SliceOfN(pair, 0, 8).Draw(t, "headers"))
		to := core.Publishing{
			Headers:    rapid.SampledFrom([]core.HeaderMode{core.HeadersNativeText, core.HeadersNativeBytes, core.HeadersEnveloped}).Draw(t, "mode"),
			Repeats:    rapid.Bool().Draw(t, "repeats"),
			MaxHeaders: rapid.IntRange(0, 6).Draw(t, "most"),
		}
		got := h.ForDeadLetter(9, nil, to, 0)
		if n, bad := got.Count(); to.MaxHeaders != 1 && (n != 9 || bad) {
			t.Fatalf("count is %d, %t", n, bad)
		}
		if to.MaxHeaders > 0 && len(got) > to.MaxHeaders {
			t.Fatalf("%d headers, at most %d", len(got), to.MaxHeaders)
		}
		left := map[string]int{}
		note := func(h core.Headers, by int) {
			for _, x := range h {
				if strings.EqualFold(x.Name, core.CountHeader) {
					continue
				}
				left[x.Name+"\x00"+string(x.Value)] += by
			}
		}
		note(h, 1)
		for i, x := range got {
			if !to.Headers.Carries(x) {
				t.Fatalf("%q cannot be carried", x)
			}
			if !to.Repeats && got[i+1:].Has(x.Name) {
				t.Fatalf("%q is there twice", x.Name)
			}
			if x.Name == core.EncodedHeader {
				list, err := core.DecodeHeaders(string(x.Value))
				if err != nil {
					t.Fatal(err)
				}
				note(list, -1)
				continue
			}
			note(core.Headers{x}, -1)
		}
		for k, n := range left {
			if n != 0 {
				t.Fatalf("%q is there %d times too few", k, n)
			}
		}
	})
}

func TestDecodeHeadersRefuses(t *testing.T) {
	for _, s := range []string{"?", "AAAA", "AAAABXgtYmluAAAAAgD", "/////w==", "AAAABXgtYmlu"} {
		h, err := core.DecodeHeaders(s)
		var want *core.HeadersError
		if !errors.As(err, &want) || h != nil {
			t.Errorf("DecodeHeaders(%q) = %v, %v, want a *HeadersError", s, h, err)
		}
	}
}

func FuzzDecodeHeaders(f *testing.F) {
	for _, s := range []string{"", "AAAABXgtYmluAAAAAgD/", "/////w==", "AAAAAAAAAAA=", "\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := core.DecodeHeaders(s)
		if err == nil && h.Encode() != strings.NewReplacer("\r", "", "\n", "").Replace(s) {
			t.Fatalf("%q decodes to %v, which encodes to %q", s, h, h.Encode())
		}
	})
}
