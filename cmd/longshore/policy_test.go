// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A command's own exit statuses become outcomes, the nearest level first, status
// by status; ours hold where nothing is said.
func TestExitStatusesOfOnesOwn(t *testing.T) {
	const text = `
endpoints:
  pipe:
    transport: pipe
    stdio: true
    settings: {loopback: true}
    defaults: {exec: {on_exit: {2: dead_letter, 3: drop, 65: retry}}}
defaults:
  max_attempts: 3
  dead_letter: {to: pipe, name: dead}
  exec: {timeout: 20s, on_exit: {2: drop, 4: drop}}
subscriptions:
  - from: pipe
    name: orders
    exec: {command: [sh, -c, 'read -r x; echo "$x at $LONGSHORE_ATTEMPT" >&2; exit "$x"'], on_exit: {3: give_up}}
    forward: {to: pipe, name: done}
`
	r := run(t, service(t, text), "[orders] 2\n[orders] 3\n[orders] 4\n[orders] 65\n[orders] 70\n[orders] 69\n")
	if r.status != 0 {
		t.Fatalf("got status %d:\n%s", r.status, r.err)
	}
	for status, want := range map[string]struct {
		runs int
		dead bool
	}{
		"2":  {1, true},  // the endpoint's defaults before the file's
		"3":  {1, true},  // given up at once, before the endpoint's defaults
		"4":  {1, false}, // dropped, by the file's defaults
		"65": {3, true},  // tried again, in place of our drop
		"70": {1, true},  // ours
		"69": {3, true},  // nothing is put off where nothing says for how long
	} {
		if n := strings.Count(r.err, fmt.Sprintf(`msg="%s at `, status)); n != want.runs {
			t.Errorf("%s ran %d times, want %d", status, n, want.runs)
		}
		if dead := holds(keyed(t, r.out)["dead"], status); dead != want.dead {
			t.Errorf("%s is a dead letter: %v, want %v", status, dead, want.dead)
		}
	}
}

// A message that stops the service has the status of its own.
func TestExitStatusThatStopsTheService(t *testing.T) {
	file := service(t, `
endpoints:
  pipe: {transport: pipe, stdio: true, settings: {loopback: true}}
subscriptions:
  - from: pipe
    name: orders
    exec: {command: [sh, -c, exit 9], on_exit: {9: fail_fast}}
`)
	if r := run(t, file, "[orders] x\n"); r.status != 6 || !strings.Contains(r.err, "exit status 9") {
		t.Errorf("got status %d, want 6:\n%s", r.status, r.err)
	}
}

// A command that is put off runs again without an attempt being counted, as
// often as the limit says; after that attempts are.
func TestSnoozedCommands(t *testing.T) {
	for _, tt := range []struct {
		name, limit string
		want        string // the attempt of the run that goes well
	}{{"within the limit", "", "1"}, {"beyond the limit", ", limit: 1", "2"}} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			script := fmt.Sprintf(`echo x >> %[1]s/runs; [ "$(wc -l < %[1]s/runs)" -gt 2 ] || exit 69; echo "$LONGSHORE_ATTEMPT"`, dir)
			r := run(t, service(t, executing(script, "    max_attempts: 3\n    snooze: {delay: 50ms"+tt.limit+"}\n")), "[orders] x\n")
			if r.status != 0 || !holds(keyed(t, r.out)["done"], tt.want) {
				t.Errorf("got status %d and %q, want attempt %s:\n%s", r.status, r.out, tt.want, r.err)
			}
		})
	}
}

// Time is a bound on attempts as their number is.
func TestElapsedTime(t *testing.T) {
	r := run(t, service(t, executing("exit 1", "    max_elapsed: 300ms\n    backoff: {kind: constant, first: 100ms, jitter: 0}\n")), "[orders] x\n")
	if r.status != 0 || !holds(keyed(t, r.out)["dead"], "x") {
		t.Fatalf("got status %d and %q, want a dead letter:\n%s", r.status, r.out, r.err)
	}
	// After about 0, 100, 200 and 300 ms, or fewer where they take longer.
	slow := logged(t, r.err, "code=L-ERR").Sub(logged(t, r.err, "host serves")) > 150*time.Millisecond
	if n := strings.Count(r.err, "code=L-ERR"); n < 2 && !slow || n > 4 {
		t.Errorf("%d attempts, want 2 to 4:\n%s", n, r.err)
	}
}

// together is the start of a script that waits, 100 s at most, until n commands
// run at a time; what name they go by is the shell's to say.
func together(dir, name string, n int) string {
	return fmt.Sprintf(`touch "%[1]s/here-%[2]s"; i=0; until [ "$(ls %[1]s | grep -c here-)" -ge %[3]d ]; do i=$((i+1)); [ $i -lt 2000 ] || exit 70; sleep 0.05; done; `,
		dir, name, n)
}

// Four workers run four commands at a time.
func TestWorkers(t *testing.T) {
	script := "read -r x; " + together(t.TempDir(), "$x", 4) + `echo "$x"`
	r := run(t, service(t, executing(script, "    workers: 4\n")), "[orders] 1\n[orders] 2\n[orders] 3\n[orders] 4\n")
	if got := keyed(t, r.out); r.status != 0 || len(got["done"]) != 4 {
		t.Errorf("got status %d and %q, want all four to meet:\n%s", r.status, r.out, r.err)
	}
}

// Messages with the same value of a header are handled one after the other and in
// order, those of several at a time.
func TestByKey(t *testing.T) {
	for _, header := range []string{"partition-key", "x-tenant"} {
		t.Run(header, func(t *testing.T) {
			dir := t.TempDir()
			variable := "$LONGSHORE_HEADER_" + strings.ToUpper(strings.ReplaceAll(header, "-", "_"))
			script := fmt.Sprintf(`read -r x; k=%[2]s; mkdir "%[1]s/busy-$k" || exit 70; [ "$x" -gt 1 ] || { %[3]s}; echo "$x" >> "%[1]s/order-$k"; rmdir "%[1]s/busy-$k"; echo ok`,
				dir, variable, together(dir, "$k", 2))
			var in strings.Builder
			for i := range 10 {
				fmt.Fprintf(&in, "[orders] %s\n[orders] %s\n", enveloped(header, "acme", fmt.Sprint(i+1)), enveloped(header, "other", fmt.Sprint(i+1)))
			}
			r := run(t, service(t, executing(script, "    workers: 4\n    by_key: "+header+"\n")), in.String())
			if got := keyed(t, r.out); r.status != 0 || len(got["done"]) != 20 {
				t.Fatalf("got status %d and %q, want twenty:\n%s", r.status, r.out, r.err)
			}
			for _, tenant := range []string{"acme", "other"} {
				b, err := os.ReadFile(filepath.Join(dir, "order-"+tenant))
				if diff := cmp.Diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", string(b)); diff != "" || err != nil {
					t.Errorf("order of %s (-want +got):\n%s%v", tenant, diff, err)
				}
			}
		})
	}
}

// enveloped is a payload with one header, as a line of a pipe has it.
func enveloped(name, value, payload string) string {
	header := name + ": " + value
	b := binary.BigEndian.AppendUint32(nil, uint32(len(header)))
	return "rs1:" + base64.StdEncoding.EncodeToString(append(b, header+payload+"\n"...))
}

// A rate holds messages up, and a window and a breaker lose none.
func TestPacedAndGuarded(t *testing.T) {
	more := "    rate_limit: {per_second: 40, burst: 5}\n    circuit_breaker: {share: 0.5, of: 4, pause: 50ms, longest: 100ms, probes: 2}\n    window: {messages: 8, bytes: 4096}\n"
	script := `read -r x; case $x in bad*) [ "$LONGSHORE_ATTEMPT" -gt 1 ] || exit 1 ;; esac; echo "$x"`
	var in strings.Builder
	for i := range 10 {
		fmt.Fprintf(&in, "[orders] good%d\n[orders] bad%d\n", i, i)
	}
	r := run(t, service(t, executing(script, "    max_attempts: 3\n"+more)), in.String())
	if got := keyed(t, r.out); r.status != 0 || len(got["done"]) != 20 {
		t.Errorf("got status %d and %d done, want all:\n%s", r.status, len(got["done"]), r.err)
	}
	// 30 runs, of which the first 5 may begin at once.
	if took := logged(t, r.err, "host stopped").Sub(logged(t, r.err, "host serves")); took < 25*time.Second/40 {
		t.Errorf("it took %v, want 625ms at least", took)
	}
}

// Explain tells what a command's exit statuses mean.
func TestExplainExitStatuses(t *testing.T) {
	text := strings.Replace(executing("exit 1", "    max_attempts: 3\n"), "trim_newline: true", "on_exit: {1: give_up}", 1)
	r := finish(t, command(t, "explain", service(t, text)))
	for _, want := range []string{"  exit status 1  ", "  exit status 65 ", "  exit status 70 "} {
		if !strings.Contains(r.out, want) {
			t.Errorf("it does not say %q:\n%s", want, r.out)
		}
	}
}

// A paused subscription is opened and reads nothing.
func TestPaused(t *testing.T) {
	s := start(t, service(t, executing("echo ran >&2; cat", "    paused: true\n")))
	fmt.Fprint(s.feed, "[orders] x\n")
	time.Sleep(300 * time.Millisecond) // nothing is to happen: there is nothing to wait for
	s.signal(t, syscall.SIGTERM)
	s.ends(t, 0)
	if strings.Contains(s.log.String(), "msg=ran") {
		t.Errorf("it has read:\n%s", s.log.String())
	}
}

// A default that cannot be carried out is told once, at its own line.
func TestRefusedDefault(t *testing.T) {
	file := service(t, `
endpoints:
  pipe: {transport: pipe, stdio: true, settings: {loopback: true}}
defaults:
  max_attempts: 2
  dead_letter: {to: pipe, name: orders}
subscriptions:
  - {from: pipe, name: orders, forward: {to: pipe, name: done}}
  - {from: pipe, name: returns, forward: {to: pipe, name: done}}
`)
	r := run(t, file, "")
	if r.status != 3 || strings.Count(r.err, ":6:3: ") != 1 {
		t.Errorf("got status %d, want 3 and one line about line 6:\n%s", r.status, r.err)
	}
}
