// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/cmd/longshore/internal/command"
	"github.com/longshore-go/longshore/cmd/longshore/internal/config"
	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/conform/card"
	"github.com/longshore-go/longshore/internal/conform/outside"
)

// conformFlags are those of longshore conform.
type conformFlags struct {
	settings, options                    string
	subscription, to                     string
	inject, collect, disconnect, restart string
	stalled, echo                        string
	env, cards                           []string
	pattern                              string
	parallel                             int
	wait, quiet, late, maxHold           time.Duration
	list, stable                         bool
	output                               string
}

// defaultParallel is how many cases run at a time: most of them wait.
const defaultParallel = 4

// add adds the flags to the command.
func (f *conformFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.settings, "settings", "", "file with the settings of the endpoint, in YAML or JSON")
	flags.StringVar(&f.subscription, "subscription", conform.DefaultSubscription, "name that is read")
	flags.StringVar(&f.options, "options", "", "file with the options of the subscription, in YAML or JSON")
	flags.StringVar(&f.to, "to", "", "name that is published to (default the name that is read)")
	flags.StringVar(&f.inject, "inject", "", "command that puts messages where the subscription reads")
	flags.StringVar(&f.collect, "collect", "", "command that reads what is published")
	flags.StringVar(&f.disconnect, "disconnect", "", "command that cuts the plugin's connection to its transport")
	flags.StringVar(&f.restart, "restart", "", "command that restarts the transport itself")
	flags.StringVar(&f.stalled, "stalled", "", "name of a destination that takes nothing and answers nothing")
	flags.StringVar(&f.echo, "echo", "", "name of a destination that answers each request with its payload")
	flags.StringArrayVar(&f.env, "env", nil, "name of an environment variable that the plugin gets (repeatable)")
	flags.StringVar(&f.pattern, "run", "", "run only the cases whose id matches this regular expression")
	flags.StringArrayVar(&f.cards, "card", nil, "file that the card is written to, .json or .md (repeatable)")
	flags.BoolVar(&f.stable, "stable", false, "leave out of cards what differs from run to run: times, notes, logs, version, checksum")
	flags.IntVar(&f.parallel, "parallel", defaultParallel, "cases that run at a time")
	durationFlag(cmd, &f.wait, "wait", conform.DefaultWait, "longest that anything may take")
	durationFlag(cmd, &f.quiet, "quiet", conform.DefaultQuiet, "how long nothing may come where nothing may come")
	durationFlag(cmd, &f.late, "late", conform.DefaultLate, "latest that something delayed may come after its time")
	durationFlag(cmd, &f.maxHold, "max-hold", conform.DefaultMaxHold, "leave out cases that outlast a longer hold than this")
	flags.BoolVar(&f.list, "list", false, "list the cases and what they claim, and run none")
	outputFlag(cmd, &f.output, "text", "json", "markdown")
}

// argumentError is a mistake in a flag, found before anything was run.
type argumentError struct {
	flag string
	err  error
}

func (e *argumentError) Error() string { return e.flag + ": " + e.err.Error() }
func (e *argumentError) Unwrap() error { return e.err }

// only returns what --run says; nil is all cases.
func (f *conformFlags) only() (func(id string) bool, error) {
	if f.pattern == "" {
		return nil, nil
	}
	re, err := regexp.Compile(f.pattern)
	if err != nil {
		return nil, &argumentError{"--run", err}
	}
	for _, c := range conform.Cases() {
		if re.MatchString(c.ID) {
			return re.MatchString, nil
		}
	}
	return nil, &argumentError{"--run", fmt.Errorf("no case matches %q; --list shows them", f.pattern)}
}

// proof returns what the flags ask for. It reads all files and looks for all
// commands, so that a run ends with what it is to leave behind.
func (f *conformFlags) proof(path string, lookup func(string) (string, bool)) (*proof, error) {
	if f.parallel < 1 {
		return nil, &argumentError{"--parallel", fmt.Errorf("it cannot be %d; run one case at a time, or more", f.parallel)}
	}
	for _, d := range []struct {
		flag string
		time time.Duration
	}{{"--wait", f.wait}, {"--quiet", f.quiet}, {"--late", f.late}, {"--max-hold", f.maxHold}} {
		if d.time <= 0 {
			return nil, &argumentError{d.flag, fmt.Errorf("it cannot be %v; give it more", d.time)}
		}
	}
	for _, c := range f.cards {
		if err := card.Check(c); err != nil {
			return nil, &argumentError{"--card", err}
		}
	}
	p := &proof{cards: f.cards, stable: f.stable, output: f.output}
	p.options = conform.Options{Parallel: f.parallel, Host: hostCommand}
	p.subject = conform.Subject{
		Path: path, Env: f.env, Subscription: f.subscription, Destination: f.to, Stalled: f.stalled, Echo: f.echo,
		Wait: f.wait, Quiet: f.quiet, Late: f.late, MaxHold: f.maxHold,
	}
	if err := f.commands(&p.subject); err != nil {
		return nil, err
	}
	var err error
	if p.settings, err = loadSettings(f.settings, lookup); err != nil {
		return nil, err
	}
	if p.choices, err = loadSettings(f.options, lookup); err != nil {
		return nil, err
	}
	if p.settings != nil {
		p.subject.Settings = p.settings.Values
	}
	if p.choices != nil {
		p.subject.Options = p.choices.Values
	}
	return p, nil
}

// commands reads the flags that are commands.
func (f *conformFlags) commands(s *conform.Subject) error {
	for _, c := range []struct {
		flag, line string
		use        func(command []string)
	}{
		{"--inject", f.inject, func(command []string) { s.Inject = outside.Inject(command) }},
		{"--collect", f.collect, func(command []string) { s.Collect = outside.Collect(command) }},
		{"--disconnect", f.disconnect, func(command []string) { s.Disconnect = outside.Disconnect(command) }},
		{"--restart", f.restart, func(command []string) { s.Restart = outside.Restart(command) }},
	} {
		if c.line == "" {
			continue
		}
		list, err := words(c.line)
		if err != nil {
			return &argumentError{c.flag, err}
		}
		if list[0], err = command.Find(list[0]); err != nil {
			return &argumentError{c.flag, err}
		}
		c.use(list)
	}
	return nil
}

// hostCommand is this program as a host that is killed.
func hostCommand() ([]string, error) {
	path, err := os.Executable()
	return []string{path, "conform-host"}, err
}

// flagOf is the flag that fills a field of conform.Subject.
func flagOf(field string) string {
	if field == "destination" {
		return "--to"
	}
	return "--" + strings.ToLower(field)
}

// loadSettings reads a file, nil without one.
func loadSettings(path string, lookup func(string) (string, bool)) (*config.Settings, error) {
	if path == "" {
		return nil, nil
	}
	return config.LoadSettings(path, lookup)
}
