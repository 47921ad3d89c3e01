// SPDX-License-Identifier: Apache-2.0

// Package pythontransport proves the transport plugin that is written in Python.
package pythontransport

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/longshore-go/longshore/pluginapi/plugintest"
)

// maxLines is what the README says of the plugin's one file.
const maxLines = 300

// TestConformance runs the whole suite, each case with a database of its own.
func TestConformance(t *testing.T) {
	t.Setenv("CGO_ENABLED", "0") // of a program that the suite builds, so that what it imports is compiled once
	plugintest.Run(t, plugintest.Subject{
		Path:     setUp(t),
		Settings: map[string]any{"path": plugintest.DirWord + "/queue.db"},
	})
}

// The file is short enough to be read in one go.
func TestTheTransportIsSmall(t *testing.T) {
	source, err := os.ReadFile("sqlite_transport.py")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(source, []byte("\n")); n > maxLines {
		t.Errorf("it has %d lines, want %d at most", n, maxLines)
	}
	for i, line := range bytes.Split(source, []byte("\n")) {
		if len(line) > 140 {
			t.Errorf("line %d has %d characters, want 140 at most", i+1, len(line))
		}
	}
}

// setUp runs setup.sh, whose folder is kept from one run to the next, and
// returns the plugin's path.
func setUp(t *testing.T) string {
	t.Helper()
	key := sha256.New()
	for _, path := range []string{"requirements.txt", "setup.sh", "../../pluginapi/proto/longshore/transport/v1/transport.proto"} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		key.Write(content)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	key.Write([]byte(here)) // the launcher names it
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatalf("the Python packages need a folder for caches: %v", err)
	}
	dir := filepath.Join(cache, "longshore-test", "python-"+hex.EncodeToString(key.Sum(nil))[:16])
	if out, err := exec.CommandContext(t.Context(), "./setup.sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("setup.sh: %v; it needs Python 3.10 with pip or venv (Debian, Ubuntu: apt-get install python3 python3-venv) and a package index:\n%s",
			err, out)
	}
	return filepath.Join(dir, "longshore-transport-sqlite")
}
