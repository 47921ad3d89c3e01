// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"testing"

	"github.com/longshore-go/longshore/core"
)

func TestRedactURL(t *testing.T) {
	for in, want := range map[string]string{
		"":                                     "",
		"plain: a@b":                           "plain: a@b",
		"mqtt://broker":                        "mqtt://broker",
		"mqtt://ann@broker:1883":               "mqtt://ann@broker:1883",
		"mqtt://ann:hunter2@broker":            "mqtt://ann:[redacted]@broker",
		"mqtt://ann:hun@ter2@broker":           "mqtt://ann:[redacted]@broker",
		"mqtt://ann:hun/ter2@broker":           "mqtt://ann:[redacted]@broker",
		"mqtt://:hunter2@broker":               "mqtt://:[redacted]@broker",
		"mqtt://[::1]:1883/x":                  "mqtt://[::1]:1883/x",
		"https://ann:hunter2@host/a?b#c":       "https://ann:[redacted]@host/a?b#c",
		"https://host:8080/a?mail=ann@example": "https://host:[redacted]@example", // it could be one
	} {
		if got := core.RedactURL(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}
