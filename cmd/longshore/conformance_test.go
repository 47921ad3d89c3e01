// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/golden"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
)

//go:generate go test . -run ^TestConformance -update

// The cards in the guide are what the transports earn today, but for times. The
// name of a card is its transport's, with a word behind a hyphen where there are
// several.
func TestConformanceCards(t *testing.T) {
	files, err := filepath.Glob("../../docs/conformance/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v, %v; want the settings of the cards", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "card.json")
			transport, _, _ := strings.Cut(name, "-")
			settings, restore := file, func(page []byte) []byte { return page }
			args := []string{"conform", plugin(transport), "--card", path}
			if start := brokers[transport]; start != nil {
				settings, restore = atBroker(t, file, start)
				args = append(args, "--collect", filepath.Join(bin, "longshore-"+transport+"-outside")+" collect")
			}
			args = append(args, "--settings", settings)
			if options := filepath.Join(filepath.Dir(file), "options", filepath.Base(file)); exists(options) {
				args = append(args, "--options", options)
			}
			cmd := command(t, args...)
			if r := finish(t, cmd); r.status != 0 {
				t.Fatalf("got status %d:\n%s%s", r.status, r.out, r.err)
			}
			golden.Compare(t, strings.TrimSuffix(file, ".yaml")+".md", restore(readCard(t, path).Stable().Markdown()))
		})
	}
}

// brokers start what transports need for their cards, and say its address and the
// one that stands for it in settings.
var brokers = map[string]func(t *testing.T) (at, stands string){
	"mqtt": func(t *testing.T) (at, stands string) {
		return mosquitto.Start(t, mosquitto.Config{Quiet: true}).URL(), "mqtt://127.0.0.1:1883"
	},
	"pulsar": func(t *testing.T) (at, stands string) {
		return pulsarbroker.Start(t, pulsarbroker.Config{}).URL(), "pulsar://127.0.0.1:6650"
	},
}

// atBroker starts a broker for settings and returns them with its address, and what
// puts the other address back into a page.
func atBroker(t *testing.T, file string, start func(*testing.T) (at, stands string)) (settings string, restore func(page []byte) []byte) {
	t.Helper()
	at, stands := start(t)
	text, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(text, []byte(stands)) {
		t.Fatalf("%s does not name %s: %v", file, stands, err)
	}
	settings = settingsOf(t, strings.ReplaceAll(string(text), stands, at))
	return settings, func(page []byte) []byte { return bytes.ReplaceAll(page, []byte(at), []byte(stands)) }
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The list of cases in the guide is the suite's.
func TestConformanceCases(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# The cases\n\nWhat `longshore conform` and `plugintest.Run` ask of a transport, by area. Sections are those of [the protocol](../protocol.md).\n")
	area := ""
	for _, c := range conform.Cases() {
		if at, _, _ := strings.Cut(c.ID, "/"); at != area {
			area = at
			fmt.Fprintf(&b, "\n## %s\n\n| case | what the plugin has to do | section |\n|---|---|---|\n", area)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.ID, strings.ReplaceAll(c.Claim, "|", `\|`), c.Section)
	}
	golden.Compare(t, "../../docs/conformance/cases.md", b.Bytes())
}

// Ids are unique and their form is what --run and cards rely on.
func TestConformanceCaseIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range conform.Cases() {
		area, what, ok := strings.Cut(c.ID, "/")
		if !ok || area == "" || what == "" || strings.ToLower(c.ID) != c.ID {
			t.Errorf("%q is not area/what in lower case", c.ID)
		}
		if seen[c.ID] {
			t.Errorf("%s is there twice", c.ID)
		}
		seen[c.ID] = true
		if c.Section == "" || !strings.HasSuffix(c.Claim, ".") || c.Run == nil {
			t.Errorf("%s lacks its section, its claim as a sentence, or its run", c.ID)
		}
	}
}
