// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/longshore-go/longshore/internal/golden"
)

// The demo tells what must happen, what happens, and that it adds up.
func TestDemo(t *testing.T) {
	r := finish(t, command(t, "demo", "--pace", "0"))
	if r.status != 0 || r.err != "" {
		t.Fatalf("got status %d:\n%s\n%s", r.status, r.out, r.err)
	}
	if strings.Contains(r.out, "\x1b") {
		t.Error("got colours off a terminal")
	}
	opening, rest, found := strings.Cut(r.out, "What happens")
	_, closing, found2 := strings.Cut(rest, "Dead letters")
	letters, closing, found3 := strings.Cut(closing, "The towers, ")
	towers, balance, found4 := strings.Cut(closing, "The stream file, ")
	if !found || !found2 || !found3 || !found4 {
		t.Fatalf("got:\n%s", r.out)
	}
	balance, last, _ := strings.Cut(balance, "\nEverything adds up")
	if last == "" {
		t.Errorf("it does not end well:\n%s", balance)
	}
	lines := strings.Split(strings.TrimSpace(letters), "\n")[1:]
	slices.Sort(lines) // they come as they come
	// What is under way where the connection is cut differs from run to run, and so
	// does the order in which the broker sends what it has kept.
	towers = regexp.MustCompile(`(?m)^  (told later|cut off) .*\n`).ReplaceAllString(towers, "")
	towers = regexp.MustCompile(`\d+ (deliveries|tried again|known already)`).ReplaceAllString(towers, "N $1")
	golden.Compare(t, "testdata/demo.golden", []byte(opening+strings.Join(lines, "\n")+"\n\nThe towers, "+towers+"The stream file, "+balance))
}

// On a terminal the demo is coloured and shows its progress in place; with
// NO_COLOR it is not coloured.
func TestDemoOnATerminal(t *testing.T) {
	for _, tt := range []struct {
		name, env string
		coloured  bool
	}{{"colours", "NO_COLOR=", true}, {"no colours", "NO_COLOR=1", false}} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := command(t, "demo", "--pace", "1ms")
			cmd.Env = append(cmd.Env, tt.env, "TERM=xterm")
			terminal, err := pty.Start(cmd)
			if err != nil {
				t.Skipf("no pseudo-terminal here: %v", err)
			}
			defer terminal.Close()
			var out bytes.Buffer
			_, _ = io.Copy(&out, terminal) // ends with an error when the other side is closed
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%v:\n%s", err, out.String())
			}
			text := out.String()
			if got := strings.Contains(text, "\x1b[1mlongshore demo\x1b[0m"); got != tt.coloured {
				t.Errorf("got colours: %t, want %t", got, tt.coloured)
			}
			if !strings.Contains(text, "\r\x1b[K") || !strings.Contains(text, "Everything adds up") {
				t.Errorf("got:\n%s", text)
			}
		})
	}
}

// A signal ends the demo early, with the status of a signal and nothing left.
// What was read before is handled and adds up; after a second signal there is no
// balance.
func TestDemoInterrupted(t *testing.T) {
	t.Run("once", func(t *testing.T) {
		if !interruptDemo(t, false) {
			t.Error("there is no balance")
		}
	})
	t.Run("twice", func(t *testing.T) {
		const tries = 10 // the demo may end before the second signal comes
		for range tries {
			if !interruptDemo(t, true) {
				return
			}
		}
		t.Errorf("there is a balance in each of %d tries", tries)
	})
}

// interruptDemo sends a signal or two to a demo and reports whether it closes with
// a balance.
func interruptDemo(t *testing.T, again bool) (balance bool) {
	t.Helper()
	cmd := command(t, "demo", "--pace", "20ms", "--log-level", "debug")
	var out, errs log
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Copies that wait keep a stop that is not forced from ending at once.
	out.says(t, "retried later")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if again {
		errs.says(t, "the next signal ends at once")
		_ = cmd.Process.Signal(syscall.SIGINT) // it may have ended
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 130 {
		t.Errorf("got status %d, want 130:\n%s", got, errs.String())
	}
	if !strings.Contains(errs.String(), "longshore: interrupted by SIGINT\n") || strings.Contains(out.String(), "WRONG") {
		t.Errorf("got:\n%s\n%s", out.String(), errs.String())
	}
	gonePlugins(t, errs.String())
	return strings.Contains(out.String(), "Everything adds up")
}
