// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/longshore-go/longshore/internal/memory"
)

// L-07: the whole service works with temporary folders that are too long, not
// there, read-only or full, and without a home. Where no folder can be written
// the start is refused and names them with the reasons.
func TestL07TempFolder(t *testing.T) {
	t.Parallel()
	long := func(n int) string {
		dir := filepath.Join(socketFolder(t), strings.Repeat("d", 200))[:n]
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	full := socketFolder(t)
	for name, tt := range map[string]struct {
		env     []string
		mounts  string // shell commands within mount points of its own
		refused []string
	}{
		"60 characters":  {env: []string{"TMPDIR=" + long(60)}},
		"95 characters":  {env: []string{"TMPDIR=" + long(95)}},
		"200 characters": {env: []string{"TMPDIR=" + long(200)}},
		"not there":      {env: []string{"TMPDIR=/nowhere/tmp"}},
		"read-only":      {env: []string{"TMPDIR=/sys"}},
		"no home":        {env: []string{"HOME="}},
		"full":           {env: []string{"TMPDIR=" + full}, mounts: "mount -t tmpfs -o size=4k,nr_inodes=1 none " + full},
		"read-only root, /run": {
			env:    []string{"TMPDIR=", "XDG_RUNTIME_DIR=/run/user"},
			mounts: "mount -t tmpfs none /run && mkdir -m 700 /run/user && mount -o remount,bind,ro /tmp",
		},
		"nothing is writable": {
			env: []string{"TMPDIR=" + full, "XDG_RUNTIME_DIR=/nowhere/run"}, mounts: "mount -t tmpfs -o ro none " + full + " && mount -o remount,bind,ro /tmp",
			refused: []string{"endpoint mem", "/nowhere/run", full, "/tmp", "read-only file system"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.Publish("orders", memory.Text("one"))
			file := serviceFile(t, fmt.Sprintf(
				"endpoints:\n  mem: {transport: memory, settings: %s}\nsubscriptions:\n  - {from: mem, name: orders, forward: {to: mem, name: done}}\n",
				inYAML(t, b.Settings)))
			cmd := exec.Command(program(t), "run", file, "--log-format", "json")
			if tt.mounts != "" {
				cmd = mounted(t, tt.mounts, cmd.Args)
			}
			p := started(t, cmd, func(c *exec.Cmd) {
				for _, v := range os.Environ() {
					if !strings.HasPrefix(v, "XDG_RUNTIME_DIR=") {
						c.Env = append(c.Env, v)
					}
				}
				c.Env = append(c.Env, tt.env...)
			})
			if tt.refused != nil {
				if status := p.status(); status != 3 {
					t.Errorf("status %d", status)
				}
				for _, want := range tt.refused {
					if !strings.Contains(p.log.String(), want) {
						t.Errorf("it does not say %q:\n%s", want, p.log)
					}
				}
				return
			}
			b.must(b.WaitPublished(b.ctx, "done", 1))
			p.signal(syscall.SIGTERM)
			if status := p.status(); status != 0 {
				t.Errorf("status %d", status)
			}
		})
	}
}

// mounted returns a command within mount points of its own, which needs a
// privilege that not everybody has.
func mounted(t *testing.T, mounts string, args []string) *exec.Cmd {
	t.Helper()
	const within = `mount --make-rprivate / && mount --bind /tmp /tmp && `
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("no unshare here")
	}
	if out, err := exec.Command(unshare, "-m", "sh", "-c", within+mounts).CombinedOutput(); err != nil {
		t.Skipf("mount points of one's own: %v: %s", err, out)
	}
	return exec.Command(unshare, append([]string{"-m", "sh", "-c", within + mounts + ` && exec "$@"`, "sh"}, args...)...)
}
