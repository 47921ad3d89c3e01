// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// guide is the guide to this transport.
const guide = "../../docs/pulsar.md"

// guideScripts are the commands of the guide, by the name that is in their first
// line.
func guideScripts(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	scripts := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)```sh\n# (\\w+\\.sh): [^\n]*\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		scripts[m[1]] = m[2]
	}
	return scripts
}

// The texts of the guide's last table are those that people see.
func TestGuideKnowsTheTexts(t *testing.T) {
	servicetest.GuideTexts(t, guide, nil, ".", "../internal/fault", "../../core", "../../host")
}

// The scripts are all tried below.
func TestGuideHasNoOtherScripts(t *testing.T) {
	names := slices.Sorted(maps.Keys(guideScripts(t)))
	servicetest.Expect(t, "scripts", names, "backlog.sh", "grow.sh", "partition.sh", "remove.sh", "unload.sh")
}

// script runs a script of the guide on a topic of the test's own: where the broker's
// API is curl reads in its configuration.
func script(t *testing.T, b *pulsarbroker.Broker, name, topic string) string {
	t.Helper()
	out, err := tryScript(t, b, name, topic)
	if err != nil {
		t.Fatalf("%s: %v:\n%s", name, err, out)
	}
	return out
}

func tryScript(t *testing.T, b *pulsarbroker.Broker, name, topic string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	rc := fmt.Sprintf("connect-to = \"127.0.0.1:8080:%s\"\n", strings.TrimPrefix(b.WebURL(), "http://"))
	if err := os.WriteFile(filepath.Join(dir, ".curlrc"), []byte(rc), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(guideScripts(t)[name], "/orders", "/"+topic)
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", text)
	cmd.Env = append(os.Environ(), "CURL_HOME="+dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The commands of the guide do what it says of them, to a service that runs.
func TestGuideScripts(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{set: func(set *settings.Settings) { set.DiscoveryInterval = core.Duration(time.Second) }})
	name := s.topic("t")
	script(t, s.b, "partition.sh", name)
	s.Handle(s.reads("t", settings.SubscribeOptions{Subscription: "shipping"}), servicetest.Always(nil))
	s.Start()
	s.put("t", numbered(8)...)
	s.Handled(8)
	if out, err := tryScript(t, s.b, "grow.sh", name); err != nil && s.b.Partitions(name) != 8 {
		t.Fatalf("grow.sh: %v:\n%s", err, out)
	}
	s.Eventually("the new partitions are read", func() bool {
		st, err := s.b.TryStats(name + "-partition-7")
		return err == nil && len(st.Subscriptions["shipping"].Consumers) == 1
	})
	s.put("t", numbered(16)...)
	s.Handled(16)
	s.Stop()

	other := newService(t, rowOptions{})
	single := other.topic("single")
	other.Handle(other.reads("single", settings.SubscribeOptions{Subscription: "shipping"}), servicetest.Always(nil))
	other.Start()
	script(t, other.b, "unload.sh", single)
	other.put("single", numbered(1)...)
	other.Handled(1)
	other.b.AwaitBacklog(single, "shipping", 0)
	other.Stop()
	other.put("single", numbered(3)...)
	if got, want := script(t, other.b, "backlog.sh", single), "shipping 3\n"; got != want {
		t.Errorf("backlog.sh prints %q, want %q", got, want)
	}
	script(t, other.b, "remove.sh", single)
	if got := script(t, other.b, "backlog.sh", single); got != "" {
		t.Errorf("backlog.sh prints %q of a topic without subscriptions", got)
	}
}
