// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
)

func TestExamplesOverPulsar(t *testing.T) {
	b := pulsarbroker.Start(t, pulsarbroker.Config{})
	sea := mosquitto.Start(t, mosquitto.Config{})
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"counted-jobs", []string{b.URL()}},
		{"keyed-order", []string{b.URL()}},
		{"bridge", []string{sea.URL(), b.URL()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, log := run(t, "..", "", append([]string{tt.name}, tt.args...)...)
			compare(t, tt.name, out, log)
		})
	}
	t.Run("first steps of the guide", func(t *testing.T) { pulsarFirstSteps(t, b.URL()) })
}

// pulsarFirstSteps runs the service files of the guide as it says.
func pulsarFirstSteps(t *testing.T, url string) {
	dir := t.TempDir()
	guide, err := os.ReadFile("../docs/pulsar.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile("(?s)```yaml\n# (\\w+\\.yaml)(.*?)```").FindAllStringSubmatch(string(guide), -1) {
		names = append(names, m[1])
		text := "#" + strings.ReplaceAll(m[2], "pulsar://127.0.0.1:6650", url)
		if err := os.WriteFile(filepath.Join(dir, m[1]), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"ship.yaml", "watch.yaml", "order.yaml"}; !slices.Equal(names, want) {
		t.Fatalf("the guide has %v, want %v", names, want)
	}
	service(t, dir, "ship.yaml")
	seen := service(t, dir, "watch.yaml")
	lines := filepath.Join(dir, "orders.txt")
	if err := os.WriteFile(lines, []byte("{\"address\": \"Pier 4\"}\n{\"id\": 7}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "..", lines, "longshore", "run", filepath.Join(dir, "order.yaml"))
	got := []string{<-seen, <-seen}
	slices.Sort(got)
	if want := []string{`"Pier 4"`, `dead after 3: {"id": 7}`}; !slices.Equal(got, want) {
		t.Errorf("watch.yaml prints %q, want %q", got, want)
	}
}

// service runs a service file until the test ends, and returns the lines that it
// prints, once it serves.
func service(t *testing.T, dir, file string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "longshore"), "run", file)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LONGSHORE_PLUGIN_DIR="+bin)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	serves, ended, printed := make(chan struct{}), make(chan struct{}), make(chan string, 100)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			printed <- lines.Text()
		}
		close(printed)
	}()
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if strings.Contains(lines.Text(), "host serves") {
				close(serves)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		for range printed {
		}
		_ = cmd.Wait() // it was told to end
	})
	select {
	case <-serves:
	case <-ended:
		t.Fatalf("%s does not serve", file)
	}
	return printed
}
