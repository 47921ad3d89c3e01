// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The guides show code of the examples.
func TestGuidesShowTheExamples(t *testing.T) {
	for page, names := range map[string][]string{
		"zmq.md":  {"queue-workers", "fan-out", "rpc"},
		"mqtt.md": {"telemetry", "shared-workers", "request-reply"},
	} {
		t.Run(page, func(t *testing.T) {
			guide, err := os.ReadFile("../docs/" + page)
			if err != nil {
				t.Fatal(err)
			}
			var sources strings.Builder
			for _, name := range names {
				text, err := os.ReadFile(filepath.Join(name, "main.go"))
				if err != nil {
					t.Fatal(err)
				}
				sources.Write(text)
			}
			blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
			if len(blocks) == 0 {
				t.Error("it shows none")
			}
			for _, b := range blocks {
				if !strings.Contains(sources.String(), "\n"+b[1]) {
					t.Errorf("no example has this code:\n%s", b[1])
				}
			}
		})
	}
}
