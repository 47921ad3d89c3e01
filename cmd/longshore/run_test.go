// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// forwarding is a service that passes on what it reads.
const forwarding = `
endpoints:
  pipe: {transport: pipe, stdio: true}
subscriptions:
  - {from: pipe, name: orders, forward: {to: pipe, name: checked}, retry_to: {to: pipe, name: orders}}
`

// executing is a service that runs a shell script for each message; copies and
// dead letters go to the same pipe.
func executing(script, more string) string {
	return fmt.Sprintf(`
endpoints:
  pipe: {transport: pipe, stdio: true, settings: {loopback: true}}
subscriptions:
  - from: pipe
    name: orders
    exec: {command: [sh, -c, %q], timeout: 100s, trim_newline: true}
    forward: {to: pipe, name: done}
    dead_letter: {to: pipe, name: dead}
%s`, script, more)
}

// S-02: the last line needs no line end, and the end of the input ends the
// service with status 0 within 2 s.
func TestLastLineWithoutNewline(t *testing.T) {
	const tries = 10 // of a machine that is busy with something else
	for try := 1; ; try++ {
		r := run(t, service(t, forwarding), "[orders] one\n[orders] two\n[orders] three")
		if r.status != 0 {
			t.Fatalf("got status %d:\n%s", r.status, r.err)
		}
		got := keyed(t, r.out)
		if n := len(got["checked"]); n != 3 || len(got) != 1 {
			t.Errorf("got %v, want three lines on checked", got)
		}
		took := logged(t, r.err, "host stopped").Sub(logged(t, r.err, "all sources have ended"))
		if took <= 2*time.Second {
			break
		}
		if try == tries {
			t.Fatalf("it took %v to end, and not less in %d tries", took, tries)
		}
	}
}

// logged returns when a line was logged.
func logged(t *testing.T, log, msg string) time.Time {
	t.Helper()
	for line := range strings.Lines(log) {
		stamp, rest, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
		if strings.Contains(rest, msg) {
			at, err := time.Parse(time.RFC3339Nano, stamp)
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
	}
	t.Fatalf("the log does not say %q:\n%s", msg, log)
	return time.Time{}
}

// The form as the documentation shows it runs.
func TestDocumentedForm(t *testing.T) {
	r := run(t, "internal/config/testdata/good/pipe.yaml", "[orders] one\n[returns] two\nthree\n")
	if r.status != 0 {
		t.Fatalf("got status %d:\n%s", r.status, r.err)
	}
	if got := keyed(t, r.out); len(got) != 1 || !slices.Equal(got["checked"], []string{"one", "three"}) {
		t.Errorf("got %q, want what orders and everybody got on checked", got)
	}
}

// S-03: at log level debug, with a handler that fails, standard output holds
// nothing but message lines.
func TestOutputHoldsMessagesAlone(t *testing.T) {
	file := service(t, executing(`echo noise >&2; read -r x; [ "$x" != bad ] || exit 65; echo "$x"`, ""))
	r := run(t, file, "[orders] one\n[orders] bad\n[orders] two\n", "--log-level", "debug")
	if r.status != 0 {
		t.Fatalf("got status %d:\n%s", r.status, r.err)
	}
	if n := len(keyed(t, r.out)["done"]); n != 2 {
		t.Errorf("got %q, want two lines", r.out)
	}
	for _, want := range []string{"level=DEBUG", "host serves", "host stopped", "msg=noise", "code=L-ERR"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("standard error lacks %q", want)
		}
	}
}

// Services stand behind one another, and the end goes through all of them.
func TestChain(t *testing.T) {
	second := service(t, strings.NewReplacer("orders", "checked", "checked", "final").Replace(forwarding))
	first := command(t, "run", service(t, forwarding))
	next := command(t, "run", second)
	var input strings.Builder
	for i := range 500 {
		fmt.Fprintf(&input, "[orders] {\"id\":%d}\n", i)
	}
	first.Stdin = strings.NewReader(input.String())
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs log
	first.Stdout, first.Stderr = write, &errs
	next.Stdin = read
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	ended := make(chan error, 1)
	go func() { ended <- first.Wait() }()
	r := finish(t, next)
	read.Close()
	if err := <-ended; err != nil || r.status != 0 {
		t.Fatalf("got %v and status %d:\n%s%s", err, r.status, errs.String(), r.err)
	}
	if got := keyed(t, r.out); len(got["final"]) != 500 || len(got) != 1 {
		t.Errorf("got %d lines on final and keys %d, want 500 on one", len(got["final"]), len(got))
	}
}

// The reader of standard output is gone: the service ends with its own status,
// and says why.
func TestBrokenPipe(t *testing.T) {
	cmd := command(t, "run", service(t, forwarding))
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	feed, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs log
	cmd.Stdout, cmd.Stderr = write, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	read.Close()
	for range 1000 {
		if _, err := feed.Write([]byte("[orders] x\n")); err != nil {
			break // it has ended
		}
	}
	err = cmd.Wait() // standard input stays open
	if cmd.ProcessState.ExitCode() != 4 {
		t.Fatalf("got %v, want status 4:\n%s", err, errs.String())
	}
	if !strings.Contains(errs.String(), "longshore: endpoint pipe") {
		t.Errorf("it does not say why:\n%s", errs.String())
	}
	gonePlugins(t, errs.String())
}

// Exit statuses of commands become outcomes.
func TestCommandStatus(t *testing.T) {
	script := `read -r x
case $x in
ack) echo "acked at $LONGSHORE_ATTEMPT" ;;
retry) [ "$LONGSHORE_ATTEMPT" -gt 1 ] || exit 75; echo "retried at $LONGSHORE_ATTEMPT" ;;
other) [ "$LONGSHORE_ATTEMPT" -gt 2 ] || exit 9; echo "other at $LONGSHORE_ATTEMPT" ;;
drop) exit 65 ;;
dead) exit 70 ;;
never) exit 1 ;;
esac`
	file := service(t, executing(script, "    max_attempts: 3\n"))
	r := run(t, file, "[orders] ack\n[orders] retry\n[orders] other\n[orders] drop\n[orders] dead\n[orders] never\n")
	if r.status != 0 {
		t.Fatalf("got status %d:\n%s", r.status, r.err)
	}
	got := keyed(t, r.out)
	for _, want := range []string{"acked at 1", "retried at 2", "other at 3"} {
		if !holds(got["done"], want) {
			t.Errorf("done lacks %q: %q", want, got["done"])
		}
	}
	if len(got["done"]) != 3 || len(got["dead"]) != 2 || len(got) != 2 {
		t.Errorf("got %q, want three done and two dead letters (dead and never)", got)
	}
	for outcome, n := range map[string]int{"drop": 1, "dead-letter": 1} {
		if c := len(regexp.MustCompile(`code=L-ERR .*outcome=`+outcome+` `).FindAllString(r.err, -1)); c != n {
			t.Errorf("the log tells %d times of %s, want %d:\n%s", c, outcome, n, r.err)
		}
	}
}

// holds reports whether a payload, within an envelope or not, is text.
func holds(payloads []string, text string) bool {
	for _, p := range payloads {
		if payload(p) == text {
			return true
		}
	}
	return false
}

// A command that hangs is ended with its group, and its message is tried again.
func TestCommandTimeout(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	// On a machine that is slow other attempts are cut off as well.
	script := fmt.Sprintf(`[ -s %[1]s ] && echo again && exit; sleep 600 & echo $! > %[1]s; wait`, pidFile)
	text := strings.Replace(executing(script, "    max_attempts: 100\n"), "timeout: 100s", "timeout: 300ms", 1)
	r := run(t, service(t, text), "[orders] x\n")
	if r.status != 0 || !holds(keyed(t, r.out)["done"], "again") {
		t.Fatalf("got status %d, %q:\n%s", r.status, r.out, r.err)
	}
	if !strings.Contains(r.err, "no end within 300ms") {
		t.Errorf("the log does not tell of the timeout:\n%s", r.err)
	}
	b, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	eventually(t, "the command's child is gone", func() bool { return !alive(pid) })
}

// A start that is refused names the line, the field and the fix, has a status of
// its own, and leaves nothing.
func TestRefusedStart(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{
			"no destination for copies (S-STD-02)",
			"endpoints:\n  in: {transport: pipe, stdio: true}\nsubscriptions:\n  - {from: in, name: orders, forward: {to: in, name: x}}\n",
			"service.yaml:4:5: subscription orders of endpoint in: retry_to: there is no destination for copies",
		},
		{
			"dead letter that comes back (S-STD-15)",
			"endpoints:\n  in: {transport: pipe, stdio: true, settings: {loopback: true}}\nsubscriptions:\n" +
				"  - from: in\n    name: orders\n    forward: {to: in, name: x}\n    max_attempts: 2\n    dead_letter: {to: in, name: orders}\n",
			"service.yaml:8:5: subscription orders of endpoint in: dead_letter: ",
		},
		{
			"two at once",
			"endpoints:\n  in: {transport: pipe, stdio: true, settings: {loopback: maybe}}\n  away: {transport: nowhere}\nsubscriptions:\n" +
				"  - {from: in, name: orders, forward: {to: in, name: x}}\n",
			"service.yaml:3:10: endpoint away: transport: locate: not found: ",
		},
		{
			"command",
			"endpoints:\n  in: {transport: pipe, stdio: true}\nsubscriptions:\n  - {from: in, name: orders, exec: {command: [longshore-no-such-program]}}\n",
			"service.yaml:4:37: subscription orders of endpoint in: exec.command: find command longshore-no-such-program: executable file not found in $PATH; install it, or write its path",
		},
		{
			"subscription twice (E-12)",
			"endpoints:\n  in: {transport: pipe, stdio: true, settings: {loopback: true}}\nsubscriptions:\n" +
				"  - {from: in, name: orders, forward: {to: in, name: x}}\n  - {from: in, name: orders, forward: {to: in, name: y}}\n",
			"service.yaml:5:16: subscription orders of endpoint in: name: declared twice on its endpoint; keep one, or attach a second endpoint",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := run(t, service(t, tt.text), "[orders] x\n")
			if r.status != 3 || r.out != "" {
				t.Errorf("got status %d and output %q, want 3 and none", r.status, r.out)
			}
			if !strings.Contains(r.err, "longshore: the service cannot start\n") || !strings.Contains(r.err, tt.want) {
				t.Errorf("got:\n%s\nwant it to say:\n%s", r.err, tt.want)
			}
		})
	}
}

// One mistake is told once.
func TestOneMistakeOneFinding(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{
			"an option of a subscription",
			"endpoints:\n  in: {transport: pipe, stdio: true}\nsubscriptions:\n" +
				"  - {from: in, name: orders, retry_to: {to: in, name: orders}, options: {skip: -1}, forward: {to: in, name: x}}\n",
			"service.yaml:4:74: subscription orders of endpoint in: options.skip: is no known field; remove it: nothing can be set here\n",
		},
		{
			"no stdio",
			"endpoints:\n  in: {transport: pipe}\nsubscriptions:\n" +
				"  - {from: in, name: orders, retry_to: {to: in, name: orders}, forward: {to: in, name: x}}\n",
			"service.yaml:2:3: endpoint in: stdio: the transport needs the host's standard input and output; set stdio: true\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := service(t, tt.text)
			r := run(t, file, "[orders] x\n")
			_, said, _ := strings.Cut(r.err, "longshore: the service cannot start\n")
			if got := strings.TrimPrefix(said, filepath.Dir(file)+"/"); r.status != 3 || got != tt.want {
				t.Errorf("got status %d and:\n%s\nwant 3 and:\n%s", r.status, got, tt.want)
			}
		})
	}
}

// A log that nobody reads does not end a service.
func TestClosedStandardError(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	cmd := command(t, "run", service(t, forwarding))
	cmd.Stdin = strings.NewReader("[orders] one\n[orders] two\n")
	cmd.Stderr = write
	out, err := cmd.Output()
	write.Close()
	if err != nil || len(keyed(t, string(out))["checked"]) != 2 {
		t.Errorf("got %q, %v; want both lines", out, err)
	}
}

// Secrets and settings from the environment reach the plugin and no message.
func TestSettingFromTheEnvironment(t *testing.T) {
	text := strings.Replace(forwarding, "name: checked", "name: \"${env:LONGSHORE_TEST_KEY}\"", 1)
	cmd := command(t, "run", service(t, text))
	cmd.Env = append(cmd.Env, "LONGSHORE_TEST_KEY=other")
	cmd.Stdin = strings.NewReader("[orders] one\n")
	r := finish(t, cmd)
	if diff := cmp.Diff(1, len(keyed(t, r.out)["other"])); diff != "" || r.status != 0 {
		t.Errorf("got status %d, %q:\n%s", r.status, r.out, r.err)
	}
}
