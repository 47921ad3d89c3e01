// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// started is a service under way.
type started struct {
	cmd  *exec.Cmd
	log  *log
	feed interface {
		Write([]byte) (int, error)
		Close() error
	}
}

// start starts a service and waits until it serves.
func start(t *testing.T, file string, args ...string) *started {
	t.Helper()
	s := &started{cmd: command(t, append([]string{"run", file}, args...)...), log: &log{}}
	feed, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.feed, s.cmd.Stderr = feed, s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() }) // it has ended unless the test failed
	s.log.says(t, "host serves")
	return s
}

// ends waits for the end, by itself and not for the limit of a run, and checks
// the status.
func (s *started) ends(t *testing.T, status int) {
	t.Helper()
	_ = s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); got != status {
		t.Fatalf("got status %d, want %d:\n%s", got, status, s.log.String())
	}
	gonePlugins(t, s.log.String())
}

func (s *started) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// SIGTERM and SIGINT stop an idle service whose input stays open.
func TestSignalStops(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			s := start(t, service(t, forwarding))
			s.signal(t, sig)
			s.ends(t, 0)
		})
	}
}

// L-02: what is in work when the signal comes is finished.
func TestSignalWaitsForCommands(t *testing.T) {
	dir := t.TempDir()
	script := fmt.Sprintf(`touch %s/begun; sleep 1; touch %s/finished`, dir, dir)
	s := start(t, service(t, executing(script, "")))
	if _, err := s.feed.Write([]byte("[orders] x\n")); err != nil {
		t.Fatal(err)
	}
	there := func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
	eventually(t, "the command runs", func() bool { return there("begun") })
	s.signal(t, syscall.SIGTERM)
	s.ends(t, 0)
	if !there("finished") {
		t.Error("the command was cut off")
	}
}

// A second signal ends at once, commands included.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	script := fmt.Sprintf(`sleep 600 & echo $! > %s; wait`, pidFile)
	s := start(t, service(t, executing(script, "")))
	if _, err := s.feed.Write([]byte("[orders] x\n")); err != nil {
		t.Fatal(err)
	}
	pid := 0
	eventually(t, "the command runs", func() bool {
		b, _ := os.ReadFile(pidFile)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return pid != 0
	})
	s.signal(t, syscall.SIGTERM)
	s.log.says(t, "the next signal ends at once")
	time.Sleep(100 * time.Millisecond) // one that comes sooner is the same one
	s.signal(t, syscall.SIGTERM)
	s.ends(t, 143)
	eventually(t, "the command's child is gone", func() bool { return !alive(pid) })
}

// E-07, E-08, S-05: at the drain limit a stop cuts off the command that still
// runs and what has not begun, says how much that is, and has its own status.
// Nothing is dead-lettered for a stop.
func TestDrainLimit(t *testing.T) {
	dir := t.TempDir()
	script := fmt.Sprintf(`touch %s/begun; sleep 600`, dir)
	s := start(t, service(t, executing(script, "    max_attempts: 1\n")), "--drain-limit", "1s")
	if _, err := s.feed.Write([]byte("[orders] one\n[orders] two\n[orders] three\n")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command runs", func() bool {
		_, err := os.Stat(filepath.Join(dir, "begun"))
		return err == nil
	})
	s.signal(t, syscall.SIGTERM)
	s.ends(t, 5)
	if !strings.Contains(s.log.String(), "longshore: stop cut work off: subscription orders of endpoint pipe: ") {
		t.Errorf("it does not say what was cut off:\n%s", s.log.String())
	}
	if strings.Contains(s.log.String(), "L-CAP-DL") {
		t.Errorf("a stop made a dead letter:\n%s", s.log.String())
	}
}

// Copies that wait longer than the drain limit are listed, with a status of
// their own.
func TestAbandonedCopies(t *testing.T) {
	s := start(t, service(t, executing(`exit 75`, "    max_attempts: 5\n    backoff: {first: 1h, max: 1h}\n")), "--drain-limit", "2s")
	if _, err := s.feed.Write([]byte("[orders] x\n")); err != nil {
		t.Fatal(err)
	}
	s.log.says(t, "L-ERR")
	s.signal(t, syscall.SIGTERM)
	s.ends(t, 5)
	if !strings.Contains(s.log.String(), "1 waiting copies") {
		t.Errorf("the copy is not listed:\n%s", s.log.String())
	}
}

// L-01: kill -9 leaves neither plugin nor command.
func TestKillLeavesNothing(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	s := start(t, service(t, executing(fmt.Sprintf(`echo $$ > %s; exec sleep 600`, pidFile), "")))
	if _, err := s.feed.Write([]byte("[orders] x\n")); err != nil {
		t.Fatal(err)
	}
	pid := 0
	eventually(t, "the command runs", func() bool {
		b, _ := os.ReadFile(pidFile)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return pid != 0
	})
	s.signal(t, syscall.SIGKILL)
	_ = s.cmd.Wait()
	eventually(t, "the command is gone", func() bool { return !alive(pid) })
	gonePlugins(t, s.log.String())
}
