// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/internal/handshake"
)

func needProc(t *testing.T) {
	t.Helper()
	if why := procReason(); why != "" {
		t.Skip(why)
	}
}

func TestHeld(t *testing.T) {
	needProc(t)
	before := held(os.Getpid())
	path := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	after := held(os.Getpid())
	if files := added(before.files, after.files); !slices.Equal(files, []string{path}) {
		t.Errorf("files %q, want %q", files, path)
	}
	if after.sockets != before.sockets+1 {
		t.Errorf("%d sockets, want one more than %d", after.sockets, before.sockets)
	}
	if after.threads == 0 || after.rss == 0 {
		t.Errorf("%d threads, %d bytes of memory", after.threads, after.rss)
	}
}

// TestFamily finds a child in a session of its own, and one whose parent has
// ended, by the folder in its environment.
func TestFamily(t *testing.T) {
	needProc(t)
	dir := t.TempDir()
	start := func(script string) (*exec.Cmd, int) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Env = append(os.Environ(), handshake.EnvRunDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 64)
		n, err := out.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		child := 0
		for _, b := range buf[:n] {
			if b >= '0' && b <= '9' {
				child = 10*child + int(b-'0')
			}
		}
		t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) })
		return cmd, child
	}
	orphanMaker, orphan := start("sleep 60 >/dev/null & echo $!")
	if err := orphanMaker.Wait(); err != nil {
		t.Fatal(err)
	}
	parent, child := start("setsid sleep 60 >/dev/null & echo $!; wait")
	defer func() {
		_ = parent.Process.Kill()
		_ = parent.Wait()
	}()
	all := family(parent.Process.Pid)
	for _, pid := range []int{child, orphan} {
		if !slices.Contains(all, pid) {
			t.Errorf("the family of %d is %v, without %d", parent.Process.Pid, all, pid)
		}
		if !alive(pid) {
			t.Errorf("process %d is not alive", pid)
		}
	}
}

func TestNonblocking(t *testing.T) {
	needProc(t)
	var fds [2]int
	if err := unix.Pipe(fds[:]); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = unix.Close(fds[0])
		_ = unix.Close(fds[1])
	}()
	for _, want := range []bool{false, true, false} {
		if err := unix.SetNonblock(fds[0], want); err != nil {
			t.Fatal(err)
		}
		if set, known := nonblocking(os.Getpid(), fds[0]); set != want || !known {
			t.Errorf("got %v, %v, want %v", set, known, want)
		}
	}
}
