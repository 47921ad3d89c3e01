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
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// socketFolder is a short folder of a process's own for the sockets of plugins.
func socketFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ls-k-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// inFolder makes a process put its sockets there.
func inFolder(dir string) func(*exec.Cmd) {
	return func(c *exec.Cmd) { c.Env = append(environment(c), "XDG_RUNTIME_DIR="+dir) }
}

func environment(c *exec.Cmd) []string {
	if c.Env == nil {
		return os.Environ()
	}
	return c.Env
}

// L-01: kill -9 of a host with a plugin of each transport, under load: neither
// process nor file is left, and the next host serves at once, with nothing lost
// that the source keeps.
func TestL01HostKilled(t *testing.T) {
	t.Parallel()
	const messages = 2000
	b := newBench(t)
	set := b.Settings.With("outgoing", settings.KindM()).With("orders", settings.KindA())
	set.Session = "kept"
	file := serviceFile(t, fmt.Sprintf(`
endpoints:
  pipe: {transport: pipe, stdio: true}
  mem: {transport: memory, settings: %s}
subscriptions:
  - {from: pipe, name: orders, forward: {to: mem, name: received}, retry_to: {to: mem, name: again}}
  - {from: mem, name: outgoing, forward: {to: mem, name: done}}
  - {from: mem, name: orders, forward: {to: mem, name: done}}
`, inYAML(t, set)))
	for i := range messages {
		b.Publish("outgoing", memory.Text(fmt.Sprintf("m %d", i)))
		b.Publish("orders", memory.Text(fmt.Sprintf("a %d", i)))
	}
	dir := socketFolder(t)
	start := func() (*process, *os.File) {
		input, feed, err := os.Pipe()
		b.must(err)
		p := startProgram(t, file, nil, func(c *exec.Cmd) {
			inFolder(dir)(c)
			c.Stdin = input
		})
		_ = input.Close()
		t.Cleanup(func() { _ = feed.Close() })
		return p, feed
	}
	for n := 1; n <= 3; n++ {
		p, _ := start()
		b.must(b.WaitPublished(b.ctx, "done", n*messages/4))
		p.kill()
		if left := filesIn(dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	p, feed := start()
	p.servesSoon()
	_, err := feed.WriteString("[orders] line\n")
	b.must(err)
	b.must(b.WaitPublished(b.ctx, "received", 1))
	b.must(b.WaitIdle(b.ctx, "outgoing", "orders"))
	p.signal(syscall.SIGTERM)
	if status := p.status(); status != 0 {
		t.Errorf("status %d", status)
	}
	for _, q := range []string{"outgoing", "orders"} {
		if a := b.Account(q); a.Acked != messages || a.Lost != 0 {
			t.Errorf("%s: %v", q, a)
		}
	}
	came := map[string]bool{}
	for _, m := range b.Published("done") {
		came[string(m.Payload)] = true
	}
	if len(came) != 2*messages {
		t.Errorf("%d of %d messages were forwarded", len(came), 2*messages)
	}
}

// L-02: twenty commands in work on each of two endpoints when the signal comes
// to the whole process group, the stdio plugin's included: all finish, their
// acks arrive, the status is 0, and a restart brings none again. Signalled twice
// it ends at once, and what was in work is kept and counted.
func TestL02SignalToTheGroup(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		signal syscall.Signal
		twice  bool
	}{
		"SIGTERM": {syscall.SIGTERM, false}, "SIGINT": {syscall.SIGINT, false}, "SIGTERM twice": {syscall.SIGTERM, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const (
				each  = 20
				drain = 2 * patience // what ends at once does not wait for
			)
			b := newBench(t)
			set := b.Settings
			set.Session = "kept"
			gate, began := newDoor(t), filepath.Join(t.TempDir(), "began")
			var file strings.Builder
			fmt.Fprintf(&file, "endpoints:\n  pipe: {transport: pipe, stdio: true}\n")
			var subs strings.Builder
			script := fmt.Sprintf(`echo x >> %s; %s; cat`, began, gate.wait())
			for endpoint, caps := range map[string]core.Capabilities{"mqtt": settings.KindM(), "pulsar": settings.KindC()} {
				set := set
				for i := range each {
					queue := fmt.Sprintf("%s-%02d", endpoint, i)
					set = set.With(queue, caps)
					b.Publish(queue, memory.Text(queue))
					fmt.Fprintf(&subs, "  - {from: %s, name: %s, exec: {command: [sh, -c, %q]}}\n", endpoint, queue, script)
				}
				set.Session = endpoint
				fmt.Fprintf(&file, "  %s: {transport: memory, settings: %s}\n", endpoint, inYAML(t, set))
			}
			fmt.Fprintf(&subs, "  - {from: pipe, name: orders, exec: {command: [sh, -c, %q]}, forward: {to: pipe, name: out}, retry_to: {to: pipe, name: orders}}\n", script)
			path := serviceFile(t, file.String()+"subscriptions:\n"+subs.String())
			sockets := socketFolder(t)
			out := &book{}
			input, feed, err := os.Pipe()
			b.must(err)
			defer feed.Close()
			p := startProgram(t, path, []string{"--drain-limit", drain.String()}, func(c *exec.Cmd) {
				inFolder(sockets)(c)
				c.Stdin, c.Stdout = input, out
			})
			_ = input.Close()
			_, err = feed.WriteString("[orders] line\n")
			b.must(err)
			eventually(t, "all commands run", func() bool { return lineCount(began) == 2*each+1 })
			signalled := time.Now()
			p.signalGroup(tt.signal)
			p.says("msg", "stopping; the next signal ends at once")
			if tt.twice {
				until(signalled.Add(200 * time.Millisecond)) // another signal is a second one
				p.signalGroup(tt.signal)
				if status := p.status(); status != 128+int(tt.signal) {
					t.Errorf("status %d", status)
				}
				b.wait("all of it is kept", func(v memory.View) bool {
					a := v.Account()
					return a.Queued+a.Outstanding == 2*each && a.Acked == 0 && a.Lost == 0
				})
				if n := strings.Count(p.says("msg", "host stopped").text("error"), ": 1 handlers "); n != 2*each+1 {
					t.Errorf("it says of %d subscriptions what was in work, want %d", n, 2*each+1)
				}
				return
			}
			gate.open()
			if status := p.status(); status != 0 {
				t.Errorf("status %d", status)
			}
			if a := b.Account(); a.Acked != 2*each || a.Deliveries != 2*each || a.Lost != 0 {
				t.Errorf("account: %v", a)
			}
			if text := out.String(); !strings.HasSuffix(text, "\n") || strings.Count(text, "\n") != 1 || !strings.Contains(text, "| out |") {
				t.Errorf("standard output: %q", text)
			}
			if left := filesIn(sockets); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			again := startProgram(t, path, nil, func(c *exec.Cmd) { inFolder(sockets)(c) })
			again.serves()
			again.signal(syscall.SIGTERM)
			if status := again.status(); status != 0 {
				t.Errorf("status of the second run: %d", status)
			}
			if a := b.Account(); a.Deliveries != 2*each {
				t.Errorf("after a second run: %v", a)
			}
		})
	}
}
