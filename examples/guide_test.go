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

		"pulsar.md": {"counted-jobs", "keyed-order", "bridge"},
	} {
		t.Run(page, func(t *testing.T) {
			guide, err := os.ReadFile("../docs/" + page)
			if err != nil {
				t.Fatal(err)
			}
			var sources strings.Builder
			for _, name := range names {
				files, err := filepath.Glob(filepath.Join(name, "*.go"))
				if err != nil || len(files) == 0 {
					t.Fatalf("%s: %v", name, err)
				}
				for _, file := range files {
					text, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					sources.Write(text)
				}
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

// The guides say how the plugin is installed, from a release and from a checkout.
func TestGuidesInstallThePlugin(t *testing.T) {
	const module = "github.com/longshore-go/longshore"
	for _, name := range []string{"file", "mqtt", "pulsar", "zmq"} {
		guide, err := os.ReadFile("../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		dir := "plugins/" + name + "/longshore-transport-" + name
		if _, err := os.Stat(filepath.Join("..", dir, "main.go")); err != nil {
			t.Error(err)
		}
		for _, line := range []string{
			"go get -tool " + module + "/" + dir,
			"go build -o bin/ . " + module + "/" + dir,
			"go mod edit -require " + module + "@v0.0.0 -replace " + module + "=PATH-OF-THE-CHECKOUT -tool " + module + "/" + dir,
		} {
			if !strings.Contains(string(guide), "\n"+line+"\n") {
				t.Errorf("%s.md lacks %q", name, line)
			}
		}
	}
}
