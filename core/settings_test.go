// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
)

// Whatever is printed, logged or marshalled, the value stays inside.
func TestSecretStaysInside(t *testing.T) {
	const value = "hunter2"
	type settings struct {
		Name     string
		Password core.Secret
		Old      *core.Secret
	}
	s := core.NewSecret(value)
	all := settings{"n", s, &s}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "secret", s, "all", all)
	js, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{
		s.String(), s.GoString(), fmt.Sprint(s), fmt.Sprint(all), fmt.Sprintf("%v %+v %#v %s %q %x %d", s, s, s, s, s, s, s),
		fmt.Sprintf("%+v", all), fmt.Sprintf("%#v", all.Password), string(js), log.String(),
	} {
		if strings.Contains(got, value) || strings.Contains(got, fmt.Sprintf("%x", value)) {
			t.Errorf("%q shows the value", got)
		}
		if !strings.Contains(got, "[redacted]") {
			t.Errorf("%q does not say that there is one", got)
		}
	}
	if s.Reveal() != value || s.IsZero() {
		t.Errorf("the value is %q, zero %t", s.Reveal(), s.IsZero())
	}
	var back core.Secret
	if err := back.UnmarshalText([]byte(value)); err != nil || back != s {
		t.Errorf("reads back as %q, %v", back.Reveal(), err)
	}
	if zero := (core.Secret{}); !zero.IsZero() || zero.String() != "" {
		t.Errorf("an unset secret prints as %q", zero)
	}
}

func TestDurationText(t *testing.T) {
	for _, text := range []string{"250ms", "1.5s", "2m0s", "0s"} {
		var d core.Duration
		if err := d.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := d.MarshalText(); err != nil || string(got) != text {
			t.Errorf("%q reads back as %q, %v", text, got, err)
		}
	}
	d := core.Duration(time.Second)
	if err := d.UnmarshalText([]byte("5")); err == nil || !strings.Contains(err.Error(), "1.5s") || d != core.Duration(time.Second) {
		t.Errorf("a number without a unit: %v, and it is %s now", err, d)
	}
}

func TestFaultError(t *testing.T) {
	for _, tt := range []struct {
		f    *core.Fault
		want string
	}{
		{nil, "no fault"},
		{&core.Fault{Message: "connect"}, "connect"},
		{&core.Fault{Message: "configure", Diagnostics: []core.Diagnostic{{Path: "tls.ca_file", Message: "no such file", Fix: "name one"}, {Path: "x"}}},
			"configure: tls.ca_file: no such file; name one"},
		{&core.Fault{Message: "configure", Diagnostics: []core.Diagnostic{{}}}, "configure"},
	} {
		if got := tt.f.Error(); got != tt.want {
			t.Errorf("%+v prints as %q, want %q", tt.f, got, tt.want)
		}
	}
}

func TestDestinationString(t *testing.T) {
	for _, tt := range []struct {
		d    core.Destination
		want string
		zero bool
	}{
		{core.Destination{}, "", true},
		{core.Destination{Name: "q"}, "q", false},
		{core.Destination{Endpoint: "other", Name: "q"}, "q@other", false},
	} {
		if tt.d.String() != tt.want || tt.d.IsZero() != tt.zero {
			t.Errorf("%+v prints as %q, zero %t", tt.d, tt.d, tt.d.IsZero())
		}
	}
}
