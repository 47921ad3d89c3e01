// SPDX-License-Identifier: Apache-2.0

// Package golden compares what people read with files that hold it.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// update makes Compare write the files instead: go test PACKAGE -update.
var update = flag.Bool("update", false, "write golden files instead of comparing them")

// Compare fails the test unless the file at path holds got.
func Compare(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read golden file: %v; write it with -update", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); write it with -update if the new text is right:\n%s", path, diff)
	}
}
