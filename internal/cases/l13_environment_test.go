// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
)

// L-13: plugins get a short list of variables and what is passed on by name to
// each: no secret of the host, no proxy, nothing of another plugin, and no
// setting.
func TestL13HostEnvironment(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Publish("orders", memory.Text("one"))
	own, other := b.Settings, b.Settings
	own.Password, other.Password = core.NewSecret("setting-of-a"), core.NewSecret("setting-of-b")
	file := serviceFile(t, fmt.Sprintf(`
endpoints:
  a: {transport: memory, env: [TOKEN_A], settings: %s}
  b: {transport: memory, env: [TOKEN_B, NOT_SET], settings: %s}
subscriptions:
  - {from: a, name: orders, forward: {to: b, name: done}}
`, inYAML(t, own), inYAML(t, other)))
	p := startProgram(t, file, nil, func(c *exec.Cmd) {
		c.Env = append(os.Environ(), "all_proxy=socks5://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1",
			"SECRET=x-secret", "LANG=broken", "TOKEN_A=token-of-a", "TOKEN_B=token-of-b")
	})
	p.serves()
	b.must(b.WaitPublished(b.ctx, "done", 1))
	for endpoint, pid := range p.plugins() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			t.Skip("no /proc here")
		}
		got := map[string]string{}
		for v := range strings.SplitSeq(string(text), "\x00") {
			name, value, _ := strings.Cut(v, "=")
			got[name] = value
		}
		for _, name := range []string{"SECRET", "all_proxy", "HTTPS_PROXY", "NOT_SET"} {
			if v, there := got[name]; there {
				t.Errorf("%s has %s=%s", endpoint, name, v)
			}
		}
		mine, others := "A", "B"
		if endpoint == "b" {
			mine, others = others, mine
		}
		if got["TOKEN_"+mine] != "token-of-"+strings.ToLower(mine) || got["TOKEN_"+others] != "" {
			t.Errorf("%s has TOKEN_A=%q and TOKEN_B=%q", endpoint, got["TOKEN_A"], got["TOKEN_B"])
		}
		if got["LANG"] != "broken" {
			t.Errorf("%s has LANG=%q", endpoint, got["LANG"])
		}
		for _, secret := range []string{"setting-of-", b.Address} {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s has a setting in its environment", endpoint)
			}
		}
	}
	p.signal(syscall.SIGTERM)
	if status := p.status(); status != 0 {
		t.Errorf("status %d", status)
	}
	for _, secret := range []string{"setting-of-", "token-of-", "x-secret"} {
		if strings.Contains(p.log.String(), secret) {
			t.Errorf("the log shows %q", secret)
		}
	}
}

// L-14: two hosts of one program, one folder and nearly one configuration: what
// happens to one does not touch the other.
func TestL14TwoHosts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := socketFolder(t)
	host := func(name string) *process {
		file := serviceFile(t, fmt.Sprintf(
			"endpoints:\n  mem: {transport: memory, settings: %s}\nsubscriptions:\n  - {from: mem, name: %s, forward: {to: mem, name: %s-done}}\n",
			inYAML(t, b.Settings), name, name))
		p := startProgram(t, file, nil, inFolder(dir))
		p.serves()
		return p
	}
	sent := map[string]int{}
	flows := func(name string) {
		t.Helper()
		sent[name] += 100
		for range 100 {
			b.Publish(name, memory.Text("x"))
		}
		b.must(b.WaitPublished(b.ctx, name+"-done", sent[name]))
	}
	first, second, third := host("first"), host("second"), host("third")
	flows("first")
	flows("second")
	second.signal(syscall.SIGTERM)
	if status := second.status(); status != 0 {
		t.Errorf("status %d", status)
	}
	flows("first")
	if err := syscall.Kill(third.plugins()["mem"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	flows("third") // by its second generation
	flows("first")
	third.kill()
	flows("first")
	if n := len(first.log.with(pluginStarted, func(line) bool { return true })); n != 1 {
		t.Errorf("the first host started %d plugins", n)
	}
	if lines := first.log.that(func(l line) bool { return l.text("level") == "WARN" || l.text("level") == "ERROR" }); len(lines) > 0 {
		t.Errorf("the first host says %v", lines)
	}
	first.signal(syscall.SIGTERM)
	if status := first.status(); status != 0 {
		t.Errorf("status %d", status)
	}
	if left := filesIn(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
