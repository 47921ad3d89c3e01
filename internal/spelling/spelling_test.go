// SPDX-License-Identifier: Apache-2.0

package spelling_test

import (
	"testing"

	"github.com/longshore-go/longshore/internal/spelling"
)

func TestNearest(t *testing.T) {
	known := []string{"path", "existing_only", "max_bytes", "fsync", "fsync_interval", "rotate", "groups"}
	for got, want := range map[string]string{
		"paht":         "path",
		"Path":         "path",
		"existingOnly": "existing_only",
		"max-byte":     "max_bytes",
		"fsyncinteval": "fsync_interval",
		"group":        "groups",
		"compression":  "",
		"":             "",
		"x":            "",
	} {
		if is := spelling.Nearest(got, known); is != want {
			t.Errorf("%q: got %q, want %q", got, is, want)
		}
	}
	if is := spelling.Nearest("path", nil); is != "" {
		t.Errorf("of none: got %q", is)
	}
}
