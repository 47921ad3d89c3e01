// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

func TestURLHidesPassword(t *testing.T) {
	for in, want := range map[settings.URL]string{
		"mqtt://broker":                    "mqtt://broker",
		"mqtt://ann@broker:1883":           "mqtt://ann@broker:1883",
		"mqtt://ann:hunter2@broker":        "mqtt://ann:[redacted]@broker",
		"mqtt://ann:hun@ter2@broker":       "mqtt://ann:[redacted]@broker",
		"mqtt://ann:hun/ter2@broker":       "mqtt://ann:[redacted]@broker",
		"mqtt://:hunter2@broker":           "mqtt://:[redacted]@broker",
		"ann:hunter2@broker":               "ann:[redacted]@broker",
		"mqtt://[::1]:1883/x":              "mqtt://[::1]:1883/x",
		"mqtts://ann:hunter2@broker/a?b#c": "mqtts://ann:[redacted]@broker/a?b#c",
		"":                                 "",
	} {
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "url", in)
		for _, got := range []string{fmt.Sprint(in), fmt.Sprintf("%s", in), fmt.Sprintf("%#v", in), fmt.Sprintf("%v", []settings.URL{in})} {
			if strings.Trim(got, "[]") != strings.Trim(want, "[]") {
				t.Errorf("%q is shown as %s, want %s", string(in), got, want)
			}
		}
		if strings.Contains(log.String(), "hunter2") || strings.Contains(log.String(), "ter2") {
			t.Errorf("%q is logged as %s", string(in), &log)
		}
	}
}
