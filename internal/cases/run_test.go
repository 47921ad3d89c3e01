// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/memory/memtest"
	"github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/internal/programtest"
	"github.com/longshore-go/longshore/pluginapi"
)

// pluginStarted is what a host says of each plugin.
const pluginStarted = "plugin process started"

// process is a host in a process of its own: a child of the test binary, or the
// command.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	log    *book
	events chan event // of a child
	ended  chan struct{}
	began  time.Time
}

// started starts a command in a process group of its own.
func started(t *testing.T, cmd *exec.Cmd, change func(*exec.Cmd)) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, log: &book{}, events: make(chan event, 10_000), ended: make(chan struct{}), began: time.Now()}
	cmd.Stderr = p.log
	cmd.WaitDelay = late
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if change != nil {
		change(cmd)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended unless the test failed
		<-p.ended
		if t.Failed() {
			t.Logf("the log of process %d:\n%s", cmd.Process.Pid, tail(p.log.String()))
		}
		p.pluginsGo()
	})
	return p
}

// startChild runs this test binary as a host.
func startChild(t *testing.T, c childConfig, change func(*exec.Cmd)) *process {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envChild+"="+string(text))
	cmd.ExtraFiles = []*os.File{w}
	p := started(t, cmd, change)
	_ = w.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.Close()
		for lines := bufio.NewScanner(r); lines.Scan(); {
			var e event
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				p.events <- e
			}
		}
		close(p.events)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
	})
	return p
}

// startProgram runs the command with a service file.
func startProgram(t *testing.T, file string, args []string, change func(*exec.Cmd)) *process {
	t.Helper()
	cmd := exec.Command(program(t), append([]string{"run", file, "--log-format", "json"}, args...)...)
	return started(t, cmd, change)
}

// program returns the path of the command, beside its plugins.
func program(t *testing.T) string {
	t.Helper()
	memtest.Plugin(t)
	pipePlugin(t)
	return programtest.Path(t, "github.com/longshore-go/longshore/cmd/longshore")
}

func pipePlugin(t *testing.T) string {
	t.Helper()
	return programtest.Path(t, "github.com/longshore-go/longshore/plugins/pipe/longshore-transport-pipe")
}

// serviceFile writes a service file.
func serviceFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "service.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// inYAML writes settings as they stand in a service file, which takes JSON.
func inYAML(t *testing.T, set settings.Settings) string {
	t.Helper()
	text, err := pluginapi.EncodeSettings(set)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// asMap is what a child gets for settings.
func asMap(t *testing.T, set settings.Settings) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(inYAML(t, set)), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// next waits for the next event of a kind and drops those before it.
func (p *process) next(kind string) event {
	p.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		select {
		case e, ok := <-p.events:
			if !ok {
				p.t.Fatalf("the child ended before it told %q", kind)
			}
			if e.Kind == kind {
				return e
			}
		case <-limit.C:
			p.t.Fatalf("the child does not tell %q", kind)
		}
	}
}

// says waits for a line of the log with these attributes, "msg" among them.
func (p *process) says(attrs ...string) line {
	p.t.Helper()
	var found []line
	eventually(p.t, fmt.Sprintf("the log says %q", attrs), func() bool {
		found = p.log.with(attrs[1], func(l line) bool {
			for i := 0; i < len(attrs); i += 2 {
				if l.text(attrs[i]) != attrs[i+1] {
					return false
				}
			}
			return true
		})
		return len(found) > 0
	})
	return found[0]
}

// serves waits until the host of a program serves.
func (p *process) serves() { p.t.Helper(); p.says("msg", "host serves") }

// servesSoon is serves of a host that nothing of a former one keeps from it.
func (p *process) servesSoon() {
	p.t.Helper()
	p.serves()
	if took := time.Since(p.began); took > 10*time.Second+late {
		p.t.Errorf("it serves after %v", took)
	}
}

// signal sends a signal to the host alone.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// signalGroup sends a signal to the host's process group, as a terminal does.
func (p *process) signalGroup(s syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(-p.cmd.Process.Pid, s); err != nil {
		p.t.Fatal(err)
	}
}

// kill ends the host as kill -9 does and waits for the end of its plugins.
func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	<-p.ended
	p.pluginsGo()
}

// status waits for the end and returns the exit status, -1 after a signal.
func (p *process) status() int {
	p.t.Helper()
	select {
	case <-p.ended:
		p.pluginsGo()
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("process %d does not end", p.cmd.Process.Pid)
		return -1
	}
}

// plugins returns the pids of the plugins that the log tells of, by endpoint.
func (p *process) plugins() map[string]int {
	pids := map[string]int{}
	for _, l := range p.log.with(pluginStarted, func(l line) bool { return l.text("msg") == pluginStarted }) {
		if pid, ok := l["pid"].(float64); ok {
			pids[l.text("endpoint")] = int(pid)
		}
	}
	return pids
}

// pluginsGo checks that no plugin outlives its host.
func (p *process) pluginsGo() {
	p.t.Helper()
	for endpoint, pid := range p.plugins() {
		for deadline := time.Now().Add(late); alive(pid); time.Sleep(2 * time.Millisecond) {
			if time.Now().After(deadline) {
				p.t.Errorf("plugin %d of %s outlives its host", pid, endpoint)
				break
			}
		}
	}
}

// gate returns a folder of gates, and what opens one.
func gates(t *testing.T) (dir string, open func(name string)) {
	dir = t.TempDir()
	return dir, func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// lineCount counts the lines of a file, 0 without one.
func lineCount(path string) int {
	text, _ := os.ReadFile(path)
	return strings.Count(string(text), "\n")
}
