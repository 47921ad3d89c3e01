// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

func TestParseStart(t *testing.T) {
	when := time.Date(2026, 11, 30, 2, 26, 30, 250e6, time.UTC)
	for _, tt := range []struct {
		text string
		want settings.Start
	}{
		{"beginning", settings.Beginning()},
		{"end", settings.End()},
		{"sequence 7", settings.Sequence(7)},
		{"sequence 0", settings.Sequence(0)},
		{"sequence 18446744073709551615", settings.Sequence(1<<64 - 1)},
		{"timestamp 2026-11-30T02:26:30.25Z", settings.After(when)},
		{"timestamp 2026-11-30T05:26:30.25+03:00", settings.After(when)},
		{"timestamp 1700000000123", settings.After(time.UnixMilli(1700000000123))},
		{"timestamp 9223372036854775807", settings.After(time.UnixMilli(1<<63 - 1))},
		{"timestamp 999999999", settings.After(time.UnixMilli(999_999_999))},
		{"timestamp 100000000000", settings.After(time.UnixMilli(100_000_000_000))},
		{"timestamp 1970-02-01T00:00:00Z", settings.After(time.Date(1970, 2, 1, 0, 0, 0, 0, time.UTC))},
		{"timestamp 0", settings.After(time.UnixMilli(0))},
	} {
		t.Run(tt.text, func(t *testing.T) {
			got, err := settings.ParseStart(tt.text)
			if err != nil || got != tt.want {
				t.Errorf("got %v, %v; want %v", got, err, tt.want)
			}
			again, err := settings.ParseStart(got.String())
			if err != nil || again != got {
				t.Errorf("%q reads as %v, %v", got, again, err)
			}
		})
	}
}

func TestParseStartRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "is no start",
		"Beginning":                      "is no start",
		"beginning ":                     "is no start",
		"end 4":                          "is no start",
		"sequence":                       "is no start",
		"sequence ":                      "is no sequence",
		"sequence -1":                    "is no sequence",
		"sequence 7 ":                    "is no sequence",
		"sequence 18446744073709551616":  "is no sequence",
		"timestamp yesterday":            "is no time",
		"timestamp -1":                   "is no time",
		"timestamp 1969-12-31T00:00:00Z": "is no time",
		"timestamp 1700000000":           "in seconds",
		"timestamp 1000000000":           "in seconds",
		"timestamp 99999999999":          "in seconds",
		"7":                              "is no start",
		"timestamp 2026-11-30T09:00:00":  `as in "timestamp 2026-11-30T09:00:00Z", or with an offset`,
		"timestamp 2026-11-30 09:00":     `as in "timestamp 2026-11-30T09:00:00Z"`,
		"timestamp 2026-11-30":           `as in "timestamp 2026-11-30T00:00:00Z"`,
		"timestamp 1764547200":           `is a time in seconds, as it seems; give milliseconds, as in "timestamp 1764547200000"`,
	} {
		if got, err := settings.ParseStart(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v; want %q", text, got, err, want)
		}
	}
}

// A start travels as a text among the options.
func TestStartInOptions(t *testing.T) {
	for _, start := range []settings.Start{{}, settings.Beginning(), settings.Sequence(3), settings.After(time.UnixMilli(5))} {
		raw, err := pluginapi.EncodeOptions(settings.Subscription{Start: start})
		if err != nil {
			t.Fatal(err)
		}
		var got settings.Subscription
		if err := raw.Bind(&got); err != nil || got.Start != start {
			t.Errorf("%v became %v, %v (%s)", start, got.Start, err, raw.JSON())
		}
	}
	var got settings.Subscription
	err := pluginapi.NewOptions([]byte(`{"start":"soon"}`)).Bind(&got)
	f, ok := errors.AsType[*core.Fault](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	want := core.Diagnostic{
		Path: "start", Message: `"soon" is no start`,
		Fix: `give beginning, end, "sequence 7" or "timestamp 2026-11-30T00:00:00Z"`,
	}
	if f.Diagnostics[0] != want {
		t.Errorf("got %+v, want %+v", f.Diagnostics[0], want)
	}
}

func FuzzParseStart(f *testing.F) {
	for _, s := range []string{"beginning", "end", "sequence 7", "timestamp 1700000000123", "timestamp 2026-11-30T02:26:30.25Z", "timestamp 9999-12-31T23:59:60Z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := settings.ParseStart(text)
		if err != nil {
			return
		}
		if again, err := settings.ParseStart(got.String()); err != nil || again != got {
			t.Errorf("%q reads as %v, and %q as %v, %v", text, got, got, again, err)
		}
	})
}
