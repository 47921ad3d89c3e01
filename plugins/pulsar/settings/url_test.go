// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

func TestURLHidesSecrets(t *testing.T) {
	for in, want := range map[settings.URL]string{
		"pulsar://broker":                  "pulsar://broker",
		"pulsar+ssl://a:6651,b:6651":       "pulsar+ssl://a:6651,b:6651",
		"pulsar://ann:hunter2@broker:6650": "pulsar://[redacted]@broker:6650",
		"pulsar://hunter2@broker,b":        "pulsar://[redacted]@broker,b",
		"pulsar://a,ann:hun@ter2@b":        "pulsar://[redacted]@b",
		"pulsar://ann:hun/ter2://x@broker": "pulsar://[redacted]@broker",
		"ann:hunter2@broker":               "[redacted]@broker",
		"pulsar+ssl://[::1]:6651":          "pulsar+ssl://[::1]:6651",
		"":                                 "",
	} {
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "url", in)
		for _, got := range []string{fmt.Sprint(in), fmt.Sprintf("%s", in), fmt.Sprintf("%#v", in), fmt.Sprintf("%v", []settings.URL{in})} {
			if strings.Trim(got, "[]") != strings.Trim(want, "[]") {
				t.Errorf("%q is shown as %s, want %s", string(in), got, want)
			}
		}
		if strings.Contains(log.String(), "ter2") {
			t.Errorf("%q is logged as %s", string(in), &log)
		}
	}
}
