// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Build builds the Go command in folder, "." for the test's own, as the plugin
// called name, and returns the path of its binary: longshore-transport-<name>
// in a folder of the test's.
func Build(t testing.TB, name, folder string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "longshore-transport-"+name)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, folder).CombinedOutput(); err != nil {
		t.Fatalf("build the plugin %s in %s: %v\n%s", name, folder, err, out)
	}
	return path
}
