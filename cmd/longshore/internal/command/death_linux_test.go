// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// kill -9 of this process ends the command that it runs.
func TestDeathEndsTheCommand(t *testing.T) {
	if pidFile := os.Getenv("LONGSHORE_TEST_DEATH"); pidFile != "" {
		c, _ := shell(t, `echo $$ > `+pidFile+`.new; mv `+pidFile+`.new `+pidFile+`; exec sleep 600`)
		_, err := c.Run(t.Context(), input(""))
		t.Fatalf("the command ended: %v", err)
	}
	pidFile := filepath.Join(t.TempDir(), "pid")
	host := exec.Command(os.Args[0], "-test.run=^TestDeathEndsTheCommand$")
	host.Env = append(os.Environ(), "LONGSHORE_TEST_DEATH="+pidFile)
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) { // polls until the deadline
		if _, err := os.Stat(pidFile); err == nil {
			break
		}
		if time.Now().After(deadline) {
			_ = host.Process.Kill()
			t.Fatal("the command did not start")
		}
	}
	if err := host.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	gone(t, pidFile)
}
