// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// killPlugin ends the process that a line of the log tells of as kill -9 does.
func killPlugin(t *testing.T, line string) {
	t.Helper()
	var pid int
	_, rest, _ := strings.Cut(line, " pid=")
	if _, err := fmt.Sscan(rest, &pid); err != nil || pid <= 1 {
		t.Fatalf("no process in %q: %v", line, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
