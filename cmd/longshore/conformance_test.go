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
			path := filepath.Join(t.TempDir(), "card.json")
			transport, _, _ := strings.Cut(name, "-")
			settings, restore := file, func(page []byte) []byte { return page }
			args := []string{"conform", plugin(transport), "--card", path}
			if transport == "mqtt" {
				settings, restore = atBroker(t, file)
				args = append(args, "--collect", filepath.Join(bin, "longshore-mqtt-outside")+" collect")
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

// defaultServer is the server in the settings of cards of MQTT.
const defaultServer = "mqtt://127.0.0.1:1883"

// atBroker starts a server for settings and returns them with its address, and what
// puts the other address back into a page.
func atBroker(t *testing.T, file string) (settings string, restore func(page []byte) []byte) {
	t.Helper()
	b := mosquitto.Start(t, mosquitto.Config{Quiet: true})
	text, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(text, []byte(defaultServer)) {
		t.Fatalf("%s does not name %s: %v", file, defaultServer, err)
	}
	settings = settingsOf(t, strings.ReplaceAll(string(text), defaultServer, b.URL()))
	return settings, func(page []byte) []byte { return bytes.ReplaceAll(page, []byte(b.URL()), []byte(defaultServer)) }
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
