// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/golden"
)

//go:generate go test . -run ^TestSettlementPages$ -update

// The settlement pages are what explain prints today.
func TestSettlementPages(t *testing.T) {
	files, err := filepath.Glob("../../docs/settlement/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v, %v; want the files of the pages", files, err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			cmd := command(t, "explain", "--output", "markdown", "docs/settlement/"+name)
			cmd.Dir = "../.."
			r := finish(t, cmd)
			if r.status != 0 || r.err != "" {
				t.Fatalf("got status %d:\n%s", r.status, r.err)
			}
			golden.Compare(t, strings.TrimSuffix(file, ".yaml")+".md", []byte(r.out))
		})
	}
}

// explained is a service that declares everything a pipe allows.
const explained = `
endpoints:
  pipe: {transport: pipe, stdio: true, settings: {loopback: true}}
subscriptions:
  - from: pipe
    name: orders
    forward: {to: pipe, name: checked}
    max_attempts: 3
    dead_letter: {to: pipe, name: dead, causes: true}
    backoff: {first: 100ms, max: 5s}
  - from: pipe
    name: returns
    forward: {to: pipe, name: checked}
`

func TestExplain(t *testing.T) {
	file := service(t, explained)
	t.Run("text", func(t *testing.T) {
		r := finish(t, command(t, "explain", file))
		if r.status != 0 {
			t.Fatalf("got status %d:\n%s", r.status, r.err)
		}
		golden.Compare(t, "testdata/explain.golden", []byte(r.out))
	})
	t.Run("brief", func(t *testing.T) {
		r := finish(t, command(t, "explain", "--brief", file))
		if r.status != 0 || !strings.Contains(r.out, "PUBLISH(dead@pipe,n)") || strings.Contains(r.out, "dies after") {
			t.Errorf("got status %d, want the steps alone:\n%s", r.status, r.out)
		}
	})
	t.Run("json", func(t *testing.T) {
		r := finish(t, command(t, "explain", "-o", "json", file))
		var tables []core.Table
		if err := json.Unmarshal([]byte(r.out), &tables); err != nil || r.status != 0 {
			t.Fatalf("got status %d, %v:\n%s", r.status, err, r.err)
		}
		if len(tables) != 2 || tables[0].Subscription != "orders" || len(tables[0].Profiles) != 1 || len(tables[0].Profiles[0].Rows) == 0 {
			t.Errorf("got %+v, want a table for each subscription", tables)
		}
	})
	t.Run("refused", func(t *testing.T) {
		text := strings.Replace(explained, "loopback: true", "loopback: false", 1)
		r := finish(t, command(t, "explain", service(t, text)))
		if r.status != 3 || r.out != "" || strings.Count(r.err, "retry_to: ") != 2 {
			t.Errorf("got status %d and output %q, want that both subscriptions are refused:\n%s", r.status, r.out, r.err)
		}
	})
	t.Run("command that is not there", func(t *testing.T) {
		text := strings.Replace(explained, "    forward: {to: pipe, name: checked}\n    max", "    exec: {command: [longshore-no-such-program]}\n    max", 1)
		r := finish(t, command(t, "explain", service(t, text)))
		if r.status != 0 || !strings.Contains(r.err, "code=L-CHECK") {
			t.Errorf("got status %d, want the tables with a warning:\n%s", r.status, r.err)
		}
	})
}

func TestPluginList(t *testing.T) {
	r := finish(t, command(t, "plugin", "list"))
	lines := strings.Split(r.out, "\n")
	for i, name := range []string{"file", "mqtt", "pipe", "pulsar", "zmq"} {
		want := []string{name, filepath.Join(bin, "longshore-transport-"+name), "beside", "the", "executable"}
		if r.status != 0 || len(lines) < i+2 || !slices.Equal(strings.Fields(lines[i+1]), want) {
			t.Errorf("got status %d, want a line of %q:\n%s", r.status, want, r.out)
		}
	}
	// A second one of that name is found later and hidden.
	dir := t.TempDir()
	if err := os.Symlink("/bin/true", filepath.Join(dir, "longshore-transport-pipe")); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "plugin", "list", "-o", "json")
	cmd.Env = append(cmd.Env, "LONGSHORE_PLUGIN_DIR="+dir)
	r = finish(t, cmd)
	var list []struct {
		Name, Path, Found string
		Hidden            bool
	}
	if err := json.Unmarshal([]byte(r.out), &list); err != nil || len(list) != 6 {
		t.Fatalf("got %q: %v", r.out, err)
	}
	if list[0].Hidden || list[0].Path != filepath.Join(dir, "longshore-transport-pipe") || list[1].Name != "file" || list[1].Hidden || list[3].Name != "pipe" || !list[3].Hidden {
		t.Errorf("got %+v, want the second pipe hidden", list)
	}
}

func TestPluginDescribe(t *testing.T) {
	for name, file := range map[string]string{"pipe": "testdata/describe.golden", "file": "testdata/describe-file.golden"} {
		r := finish(t, command(t, "plugin", "describe", name))
		if r.status != 0 || r.err != "" {
			t.Fatalf("got status %d:\n%s", r.status, r.err)
		}
		golden.Compare(t, file, []byte(r.out))
	}
	for _, tt := range []struct {
		name, want string
		args       []string
	}{
		{"not installed", "start plugin nowhere", []string{"nowhere"}},
		{"no name", `"../pipe" cannot be the name of a transport`, []string{"../pipe"}},
		{"no plugin", "handshake", []string{"true", "--path", truth(t)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := finish(t, command(t, append([]string{"plugin", "describe"}, tt.args...)...))
			if r.status != 3 || r.out != "" || !strings.Contains(r.err, tt.want) {
				t.Errorf("got status %d, want 3 and that it says %q:\n%s", r.status, tt.want, r.err)
			}
		})
	}
}

// truth is a program that is no plugin, under a plugin's name.
func truth(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "longshore-transport-true")
	if err := os.Symlink("/bin/true", path); err != nil {
		t.Fatal(err)
	}
	return path
}
