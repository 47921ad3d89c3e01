// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/conform/card"
	"github.com/longshore-go/longshore/internal/conform/liar/liartest"
)

// plugin is the path of a plugin that was built.
func plugin(name string) string { return filepath.Join(bin, "longshore-transport-"+name) }

// settingsOf writes a settings file.
func settingsOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// honest are settings of the liar that make it tell the truth.
const honest = "dir: '{dir}/q'\n"

// files are the names in a folder.
func files(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return strings.Join(names, " ")
}

// readCard reads a card in JSON.
func readCard(t *testing.T, path string) *card.Card {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := card.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// caseLine is a line of a case.
var caseLine = regexp.MustCompile(`(?m)^(ok  |FAIL|-   )  ([a-z]+/[a-z0-9-]+) `)

// An honest plugin passes, on the screen and on the cards; the host that one
// case kills is the command itself.
func TestConform(t *testing.T) {
	dir := t.TempDir()
	cmd := command(t, "conform", liartest.Binary(t, ""), "--settings", settingsOf(t, honest+"token: hunter2\n"), "--run", "^(kill/host|settle/|honesty/)",
		"--card", filepath.Join(dir, "card.json"), "--card", filepath.Join(dir, "card.md"))
	r := finish(t, cmd)
	if r.status != 0 || r.err != "" {
		t.Fatalf("got status %d, %s%s; want 0", r.status, r.out, r.err)
	}
	c := readCard(t, filepath.Join(dir, "card.json"))
	if !c.Run.Selected || c.Plugin.Name != "liar" || c.Run.Passed < 10 || c.Run.Failed > 0 {
		t.Errorf("got %v of plugin %v, want a selection of cases of the liar that passed", c.Run, c.Plugin)
	}
	if !strings.HasSuffix(r.out, "\n"+c.Run.String()+"\n") {
		t.Errorf("got output\n%s, want it to end with %q", r.out, c.Run)
	}
	words := map[string]string{}
	for _, m := range caseLine.FindAllStringSubmatch(r.out, -1) {
		words[m[2]] = strings.TrimSpace(m[1])
	}
	for _, one := range c.Cases {
		want := map[conform.Status]string{conform.Passed: "ok", conform.Failed: "FAIL"}[one.Status]
		if want == "" {
			want = "-"
		}
		if words[one.ID] != want {
			t.Errorf("the line of %s begins with %q, want %q", one.ID, words[one.ID], want)
		}
		if one.ID == "kill/host" && one.Status != conform.Passed {
			t.Errorf("kill/host is %v: %s", one.Status, one.Reason)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "card.md"))
	if err != nil || !bytes.Equal(page, c.Markdown()) {
		t.Errorf("card.md is another card than card.json, %v:\n%s", err, page)
	}
	if got := files(t, dir); got != "card.json card.md" {
		t.Errorf("got files %q, want the two cards", got)
	}
	if text, err := c.JSON(); err != nil || bytes.Contains(text, []byte("hunter2")) || strings.Contains(r.out, "hunter2") {
		t.Errorf("the secret is shown, %v", err)
	}
}

// Other forms of the output are the cards; a stable one is the same again.
func TestConformOutput(t *testing.T) {
	args := []string{"conform", liartest.Binary(t, ""), "--settings", settingsOf(t, honest), "--run", "^credit/messages$", "--stable", "-o"}
	first := finish(t, command(t, append(args, "json")...))
	again := finish(t, command(t, append(args, "json")...))
	if first.status != 0 || first != again {
		t.Errorf("two runs are %+v and %+v, want them alike", first, again)
	}
	c, err := card.Read(strings.NewReader(first.out))
	if err != nil || c.Run.Passed != 1 {
		t.Fatalf("got %v, %v", c, err)
	}
	if page := finish(t, command(t, append(args, "markdown")...)); page.out != string(c.Markdown()) || page.err != "" {
		t.Errorf("got the page %+v of another card than\n%s", page, c.Markdown())
	}
}

// A lie turns the card red.
func TestConformLiar(t *testing.T) {
	path := filepath.Join(t.TempDir(), "card.json")
	r := finish(t, command(t, "conform", liartest.Binary(t, ""), "--settings", settingsOf(t, honest+"lie: ignores-credit\n"),
		"--run", "^(credit/messages|settle/ack)$", "--card", path))
	if r.status != 7 || !strings.HasPrefix(r.err, "longshore: plugin liar fails ") || !strings.Contains(r.err, "credit/messages") {
		t.Errorf("got status %d, %q; want 7 and the cases", r.status, r.err)
	}
	if !strings.Contains(r.out, "FAIL  credit/messages") || !strings.Contains(r.out, "\n      delivery ") {
		t.Errorf("got output\n%s, want what went wrong", r.out)
	}
	c := readCard(t, path)
	if c.Run.Failed == 0 || c.Cases[0].Status != conform.Failed || len(c.Cases[0].Faults) == 0 {
		t.Errorf("got card %+v, want a failed case", c.Cases[0])
	}
}

// Where no case can run there is one line a fault, a status of its own, and no
// card.
func TestConformRefused(t *testing.T) {
	unknown := settingsOf(t, "dir: '{dir}/q'\nlei: x\n")
	down := settingsOf(t, "dir: /dev/null/q\n")
	for name, tt := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"missing":          {[]string{plugin("none")}, 8, "longshore: start plugin none (" + plugin("none") + "): check: there is no such file; "},
		"unknown setting":  {[]string{liartest.Binary(t, ""), "--settings", unknown}, 9, "longshore: " + unknown + ":2:1: lei: is no known field; "},
		"missing setting":  {[]string{liartest.Binary(t, "")}, 9, "longshore: plugin liar refuses the settings: the schema refuses: dir: is required; set it"},
		"unknown option":   {[]string{liartest.Binary(t, ""), "--settings", settingsOf(t, honest), "--options", unknown}, 9, "longshore: " + unknown + ":1:1: dir: "},
		"transport down":   {[]string{liartest.Binary(t, ""), "--settings", down}, 10, "longshore: plugin liar does not connect: "},
		"lacking injector": {[]string{plugin("pipe")}, 2, "longshore: --inject: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := finish(t, command(t, append([]string{"conform", "--card", filepath.Join(dir, "a.md"), "--card", filepath.Join(dir, "a.json")}, tt.args...)...))
			if r.status != tt.status || r.out != "" || !strings.HasPrefix(r.err, tt.want) {
				t.Errorf("got %+v, want status %d and %q", r, tt.status, tt.want)
			}
			if name != "unknown option" && strings.Count(r.err, "\n") != 1 { // that file has two
				t.Errorf("got %q, want one line", r.err)
			}
			if got := files(t, dir); got != "" {
				t.Errorf("got files %q, want none", got)
			}
		})
	}
}

// A signal ends the run and every plugin of it, and leaves no card.
func TestConformInterrupted(t *testing.T) {
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			dir, temp := t.TempDir(), t.TempDir()
			cmd := command(t, "conform", liartest.Binary(t, ""), "--settings", settingsOf(t, honest), "--card", filepath.Join(dir, "card.md"))
			cmd.Env = append(cmd.Env, "TMPDIR="+temp)
			var out, errs log
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			out.says(t, "ok  ")
			running := children(cmd.Process.Pid)
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != want {
				t.Errorf("got status %d, want %d: %s", got, want, errs.String())
			}
			if got := files(t, dir); got != "" {
				t.Errorf("got files %q, want none", got)
			}
			for _, pid := range running {
				eventually(t, fmt.Sprintf("process %d is gone", pid), func() bool { return !alive(pid) })
			}
			if got := files(t, temp); got != "" {
				t.Errorf("folders of cases are left: %s", got)
			}
		})
	}
}

// A second signal ends at once, whatever the first one waits for: here an
// injector that is killed two seconds after it. A machine that takes that long for
// the second one shows nothing.
func TestConformInterruptedTwice(t *testing.T) {
	const killed, tries = 2 * time.Second, 10
	for range tries {
		left, took := interruptTwice(t)
		if left {
			return
		}
		if took < killed {
			t.Fatalf("the folder of the case is removed, %v behind the first signal: the end waited for the injector", took)
		}
	}
	t.Fatalf("in %d tries the second signal came too late", tries)
}

// interruptTwice reports whether a folder of a case is left, and if not what
// passed between before the first signal and behind the second.
func interruptTwice(t *testing.T) (left bool, took time.Duration) {
	t.Helper()
	started := filepath.Join(t.TempDir(), "started")
	cmd := command(t, "conform", plugin("pipe"), "--collect", "cat", "--run", "^credit/messages$", "--log-level", "info",
		"--inject", fmt.Sprintf(`sh -c 'trap "" TERM; echo >%s; exec sleep 30'`, started))
	temp := t.TempDir()
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	var out, errs log
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the injector runs", func() bool {
		_, err := os.Stat(started)
		return err == nil
	})
	first := time.Now()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	errs.says(t, "stopping; the next signal ends at once")
	_ = cmd.Process.Signal(syscall.SIGINT) // it may have ended
	took = time.Since(first)
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 130 {
		t.Errorf("got status %d, want 130: %s", got, errs.String())
	}
	return files(t, temp) != "", took
}

// children are the processes that a process started; none where they cannot be
// seen.
func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, l := range lists {
		text, err := os.ReadFile(l)
		if err != nil {
			continue
		}
		for _, f := range strings.Fields(string(text)) {
			n := 0
			_, _ = fmt.Sscan(f, &n)
			pids = append(pids, n)
		}
	}
	return pids
}

// The words that make this program an injector or a collector of the pipe.
const (
	injectorWord  = "conform-injector"
	collectorWord = "conform-collector"
)

// An injector and a collector that are commands reach the other ends of a
// plugin's standard input and output.
func TestConformCommands(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := finish(t, command(t, "conform", plugin("pipe"), "--inject", "'"+self+"' "+injectorWord, "--collect", "'"+self+"' "+collectorWord,
		"--run", "^(credit/messages|settle/results-in-order|publish/(receipts|order))$"))
	if r.status != 0 || !strings.Contains(r.out, "4 passed, 0 failed, 0 not applicable, 0 not run") {
		t.Errorf("got %+v, want that all pass", r)
	}
}

// outsideMain is an injector or a collector of the pipe, whose form is lines of
// text.
func outsideMain(word string) int {
	end := os.NewFile(3, "end")
	err := collectLines(end)
	if word == injectorWord {
		err = injectLines(end)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func injectLines(end *os.File) error {
	in := json.NewDecoder(os.Stdin)
	for in.More() {
		var m struct{ Payload []byte }
		if err := in.Decode(&m); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(end, "[%s] %s\n", os.Getenv("LONGSHORE_CONFORM_NAME"), m.Payload); err != nil {
			return err
		}
	}
	return nil
}

func collectLines(end *os.File) error {
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(map[string]bool{"ready": true}); err != nil {
		return err
	}
	lines := bufio.NewScanner(end)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := lineForm.FindSubmatch(lines.Bytes())
		if m == nil {
			return fmt.Errorf("%q is no line of the pipe", lines.Bytes())
		}
		if err := out.Encode(map[string]any{"name": string(m[1]), "payload": m[3]}); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	select {} // until it is ended
}
