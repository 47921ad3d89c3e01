// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
)

func TestFirstFailureIsRead(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 5, 250_000_000, time.UTC)
	for name, c := range map[string]struct {
		headers core.Headers
		want    time.Time
	}{
		"none":                            {nil, time.Time{}},
		"to the nanosecond":               {core.Headers{{Name: "x-longshore-first-failure", Value: []byte("2026-11-30T12:00:05.25Z")}}, at},
		"in any case":                     {core.Headers{{Name: "X-Longshore-First-Failure", Value: []byte("2026-11-30T12:00:05.25Z")}}, at},
		"in another zone":                 {core.Headers{{Name: "x-longshore-first-failure", Value: []byte("2026-11-30T13:00:05.25+01:00")}}, at},
		"the last one wins":               {core.Headers{{Name: "x-longshore-first-failure", Value: []byte("x")}, {Name: "x-longshore-first-failure", Value: []byte("2026-11-30T12:00:05.25Z")}}, at},
		"no time":                         {core.Headers{{Name: "x-longshore-first-failure", Value: []byte("yesterday")}}, time.Time{}},
		"year 1, which is none":           {core.Headers{{Name: "x-longshore-first-failure", Value: []byte("0001-01-01T00:00:00Z")}}, time.Time{}},
		"of bytes":                        {core.Headers{{Name: "x-longshore-first-failure", Value: []byte{0xff}}}, time.Time{}},
		"of a dead letter":                {core.Headers{{Name: "x-longshore-time", Value: []byte("2026-11-30T12:00:05Z")}, {Name: "x-longshore-first-failure", Value: []byte("2026-11-30T12:00:05Z")}}, time.Time{}},
		"of a dead letter's own":          {core.Headers{{Name: "x-longshore-time", Value: []byte("2026-11-30T12:00:05Z")}, {Name: "x-longshore-first-failure", Value: []byte("2026-11-30T12:00:05.25Z")}}, at},
		"of a dead letter without a time": {core.Headers{{Name: "x-longshore-time", Value: []byte("?")}, {Name: "x-longshore-first-failure", Value: []byte("2026-11-30T12:00:05.25Z")}}, at},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := c.headers.FirstFailure()
			if ok == c.want.IsZero() || !got.Equal(c.want) {
				t.Errorf("got %v, %t, want %v", got, ok, c.want)
			}
		})
	}
}

func TestFirstFailureIsReplaced(t *testing.T) {
	at := time.Date(2026, 11, 30, 13, 0, 5, 250_000_000, time.FixedZone("", 3600))
	h := core.Headers{
		{Name: "a", Value: []byte("1")}, {Name: "X-LONGSHORE-FIRST-FAILURE", Value: []byte("old")}, {Name: "b", Value: []byte("2")},
	}
	want := core.Headers{
		{Name: "a", Value: []byte("1")}, {Name: "b", Value: []byte("2")},
		{Name: "x-longshore-first-failure", Value: []byte("2026-11-30T12:00:05.25Z")},
	}
	if diff := cmp.Diff(want, h.WithFirstFailure(at)); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if string(h[1].Value) != "old" {
		t.Error("the headers it is made of were changed")
	}
}

// What is written is read again, whatever time a dead letter before it says.
func TestFirstFailureBehindADeadLetter(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 5, 0, time.UTC)
	for _, died := range []string{"2026-11-30T12:00:04Z", "2026-11-30T12:00:05Z", "9999-01-01T00:00:00Z", "?"} {
		h := core.Headers{{Name: "X-Longshore-Time", Value: []byte(died)}, {Name: "a", Value: []byte("1")}}.WithFirstFailure(at)
		if got, ok := h.FirstFailure(); !ok || !got.Equal(at) {
			t.Errorf("dead at %s: got %v, %t", died, got, ok)
		}
		if _, ok := h.Get("a"); !ok {
			t.Errorf("dead at %s: other headers are gone", died)
		}
	}
}

func FuzzFirstFailure(f *testing.F) {
	for _, s := range []string{"", "2026-11-30T12:00:05.25Z", "2026-11-30T12:00:05+24:00", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59"} {
		f.Add([]byte(s), []byte("2026-11-30T12:00:05Z"))
	}
	f.Fuzz(func(t *testing.T, failed, died []byte) {
		h := core.Headers{{Name: core.TimeHeader, Value: died}, {Name: core.FirstFailureHeader, Value: failed}}
		at, ok := h.FirstFailure()
		if !ok {
			return
		}
		// Written and read again it is the same, whatever zone it came in.
		again, ok := h[:1].WithFirstFailure(at).FirstFailure()
		if year := at.Year(); 0 <= year && year <= 9999 && (!ok || !again.Equal(at)) {
			t.Errorf("%q is read as %v, and that as %v", failed, at, again)
		}
	})
}
