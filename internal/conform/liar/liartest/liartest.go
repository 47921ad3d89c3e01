// SPDX-License-Identifier: Apache-2.0

// Package liartest builds the liar for tests.
package liartest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/longshore-go/longshore/internal/programtest"
)

// Binary returns the path of a liar that tells one lie from its start on,
// without any setting; "" is an honest one.
func Binary(tb testing.TB, lie string) string {
	tb.Helper()
	built := programtest.Path(tb, "github.com/longshore-go/longshore/internal/conform/liar/longshore-transport-liar")
	if lie == "" {
		return built
	}
	dir := tb.TempDir()
	path := filepath.Join(dir, filepath.Base(built))
	// A name of its own, since the plugin looks beside its executable.
	if err := os.Link(built, path); err != nil {
		binary, readErr := os.ReadFile(built)
		if readErr != nil {
			tb.Fatal(readErr)
		}
		if err := os.WriteFile(path, binary, 0o700); err != nil { //nolint:gosec // it is executed
			tb.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "lie"), []byte(lie), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}
