// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore-go/longshore/internal/golden"
)

// environment is what the test files find.
func environment(name string) (string, bool) {
	v, ok := map[string]string{
		"LONGSHORE_TEST_DIR":        "/opt/longshore",
		"LONGSHORE_TEST_SECRET":     "hush-hush",
		"LONGSHORE_TEST_EMPTY_NAME": "",
		"REDIS_ADDRESS":             "127.0.0.1:6379", // of examples
		"LOG":                       "/tmp/harbour.ss",
		"WORK":                      "/tmp/weighing",
	}[name]
	return v, ok
}

// E-12: each bad file is refused with an error that names the line, the field
// and the fix, all of them together.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("got %d files, %v; want at least 20", len(files), err)
	}
	for _, path := range files {
		name := filepath.Base(path)
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse(name, text, environment)
			var bad *Error
			if !errors.As(err, &bad) {
				t.Fatalf("got %v, want an *Error", err)
			}
			for _, p := range bad.Problems {
				if p.Fix == "" || p.Line < 1 || p.Column < 1 {
					t.Errorf("problem without fix or place: %+v", p)
				}
			}
			golden.Compare(t, strings.TrimSuffix(path, ".yaml")+".golden", []byte(err.Error()+"\n"))
		})
	}
}

func TestEverything(t *testing.T) {
	got, err := Load("testdata/good/everything.yaml", environment)
	if err != nil {
		t.Fatal(err)
	}
	floor, none := Duration(0), 0.0
	want := &File{
		Endpoints: map[string]*Endpoint{
			"in": {
				Transport: "pipe",
				Path:      "/opt/longshore/longshore-transport-pipe",
				Checksum:  "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
				Env:       []string{"TZ", "SSL_CERT_FILE"},
				Stdio:     true,
				Settings: map[string]any{
					"text":    "plain",
					"secret":  "hush-hush",
					"literal": "${env:LONGSHORE_TEST_SECRET}",
					"number":  int64(7),
					"large":   int64(9007199254740993),
					"ratio":   0.5,
					"flag":    true,
					"nothing": nil,
					"when":    "2026-11-30",
					"nested":  map[string]any{"list": []any{int64(1), "two", map[string]any{"three": int64(3)}}},
				},
			},
			"away": {Transport: "file", Defaults: &Defaults{Policy: Policy{
				Backoff:        &Backoff{Kind: "constant", First: Duration(time.Second), Jitter: &none},
				CircuitBreaker: &CircuitBreaker{},
			}}},
		},
		Defaults: &Defaults{
			Policy: Policy{Backoff: &Backoff{Delays: []Duration{0, Duration(time.Second), Duration(time.Minute)}}, Workers: 2},
			Exec:   &ExecDefaults{Timeout: Duration(10 * time.Second), OnExit: map[string]string{"2": "dead_letter"}},
		},
		Subscriptions: []*Subscription{
			{
				From: "in", Name: "orders",
				Options: map[string]any{"from_start": true},
				Exec:    &Exec{Command: []string{"jq", "-c", "."}, Timeout: Duration(90 * time.Second), TrimNewline: true, OnExit: map[string]string{"1": "drop", "69": "snooze", "255": "give_up"}},
				Forward: &Destination{To: "in", Name: "checked"},
				RetryTo: &Destination{To: "in", Name: "orders"},
				Policy: Policy{
					MaxAttempts:    3,
					MaxElapsed:     Duration(time.Hour),
					DeadLetter:     &DeadLetter{To: "away", Name: "dead", Causes: true},
					Backoff:        &Backoff{First: Duration(100 * time.Millisecond), Max: Duration(5 * time.Second)},
					Floor:          &floor,
					Snooze:         &Snooze{Delay: Duration(30 * time.Second), Limit: 5, Total: Duration(10 * time.Minute)},
					Workers:        4,
					ByKey:          "partition-key",
					Window:         &Window{Messages: 256, Bytes: 1 << 40},
					RateLimit:      &RateLimit{PerSecond: 0.5, Burst: 3},
					CircuitBreaker: &CircuitBreaker{Share: 0.25, Of: 40, Pause: Duration(time.Second), Longest: Duration(time.Minute), Probes: 2},
					OnUndecodable:  "dead_letter",
				},
				NoDefaults: true, Paused: true,
			},
			{
				From: "in", Name: "returns",
				Forward: &Destination{To: "in", Name: "checked"},
				RetryTo: &Destination{To: "in", Name: "returns"},
			},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(File{})); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

func TestPositions(t *testing.T) {
	f, err := Load("testdata/good/everything.yaml", environment)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		want Position
	}{
		{"", Position{1, 1}},
		{"endpoints.in", Position{2, 3}},
		{"endpoints.in.settings.nested.list[2].three", Position{19, 32}},
		{"endpoints.in.settings.unknown.deeper", Position{9, 5}},
		{"subscriptions[0].retry_to.name", Position{37, 24}},
		{"subscriptions[1]", Position{51, 5}},
		{"subscriptions[7].name", Position{30, 1}},
	} {
		t.Run(tt.path, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, f.At(tt.path)); diff != "" {
				t.Errorf("position (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"missing": filepath.Join(dir, "none.yaml"), "directory": dir, "large": large} {
		t.Run(name, func(t *testing.T) {
			if _, err := Load(path, environment); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want an error that names %s", err, path)
			}
		})
	}
}

// What a variable holds never shows in an error.
func TestSecretsStayOut(t *testing.T) {
	text := "endpoints:\n  in: {transport: pipe, settings: {a: '${env:LONGSHORE_TEST_SECRET}', b: '${env:NONE}'}}\n" +
		"subscriptions: [{from: '${env:LONGSHORE_TEST_SECRET}', name: '${env:LONGSHORE_TEST_SECRET}'}]\n"
	_, err := Parse("x.yaml", []byte(text), environment)
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v, want an error without the secret", err)
	}
}

// A few bytes of aliases must not grow without end.
func TestAliasesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("endpoints:\n  in:\n    transport: pipe\n    settings:\n      a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		last := string(rune('a' + i - 1))
		if i == 1 {
			last = "a0"
		}
		this := string(rune('a' + i))
		b.WriteString("      " + this + ": &" + this + " [" + strings.TrimSuffix(strings.Repeat("*"+last+", ", 10), ", ") + "]\n")
	}
	b.WriteString("subscriptions: [{from: in, name: a, forward: {to: in, name: b}}]\n")
	_, err := Parse("x.yaml", []byte(b.String()), environment)
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("got %.200v, want that it is too large", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/good/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("x.yaml", text, environment)
		if (file == nil) == (err == nil) {
			t.Errorf("got file %v and error %v, want one of them", file, err)
		}
		settings, err := ParseSettings("x.yaml", text, environment)
		if (settings == nil) == (err == nil) {
			t.Errorf("got settings %v and error %v, want one of them", settings, err)
		}
	})
}
