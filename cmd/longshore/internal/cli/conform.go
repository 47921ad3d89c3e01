// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/cmd/longshore/internal/config"
	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/conform/card"
)

// conformStatuses is the part of the help text about exit statuses.
const conformStatuses = `Exit status:
  0    no case failed
  1    internal error, or the output or a card cannot be written
  2    wrong arguments, or an error in a settings file
  7    at least one case failed
  8    there is no plugin: the file is missing, cannot be run, or is none
  9    the plugin refuses the settings, the subscription or the destination
  10   the plugin does not connect to its transport
  130  interrupted by SIGINT (143: SIGTERM)

But for 0 and 7 no case speaks for the plugin, and no card is written.`

// conformCommand proves a plugin.
func (a *App) conformCommand() *cobra.Command {
	var f conformFlags
	cmd := &cobra.Command{
		Use:   "conform PATH",
		Short: "Proves from outside that a transport keeps what it promises",
		Long: `Starts the plugin binary at PATH as a host does and drives it over the protocol,
case by case, as its capabilities say. Each case has processes, names and messages
of its own.

The file of --settings holds the settings of an endpoint, in YAML or JSON, as they
stand under settings: in a service file. In their texts, in names and in options
{case} stands for a word and {dir} for an empty folder of each case; quote them
in YAML: "{dir}/queue.db".

Where what the plugin publishes comes back on its subscription, nothing more is
needed. Else --inject puts messages where the subscription reads, and --collect
reads what was published. Both are commands, run without a shell, with
LONGSHORE_CONFORM_NAME, LONGSHORE_CONFORM_DIR and LONGSHORE_CONFORM_SETTINGS in
their environment. An injector gets a line for each message on standard input and
exits with 0 when the transport has them all; a collector prints {"ready":true}
and then a line for each message, until SIGTERM:

  {"headers":[["name","base64"]],"payload":"base64"}

Of a plugin that uses standard input and output, their descriptor 3 is the other
end.

` + conformStatuses,
		Example: `  longshore conform ./longshore-transport-mine --settings mine.yaml --card mine.md
  longshore conform ./longshore-transport-mine --inject './put.py -v' --collect ./get.py --run '^credit/'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.list {
				return noArgs(cmd, args)
			}
			return exactlyOne("PATH")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			only, err := f.only()
			if err != nil {
				return &usageError{cmd.CommandPath(), err}
			}
			if f.list {
				return a.listCases(only, f.output)
			}
			p, err := f.proof(args[0], a.Lookup)
			var wrong *argumentError
			if errors.As(err, &wrong) {
				return &usageError{cmd.CommandPath(), err}
			}
			if err != nil {
				return err
			}
			p.options.Only = only
			return a.conform(cmd, p)
		},
	}
	f.add(cmd)
	return cmd
}

// conformHostCommand acts as a host that the suite kills.
func conformHostCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "conform-host",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return conform.HostMain(cmd.Context(), os.Stdin, os.Stdout)
		},
	}
}

// proof is what a call asks to be proved.
type proof struct {
	subject           conform.Subject
	options           conform.Options
	settings, choices *config.Settings // of the endpoint and of the subscription; nil = none
	cards             []string
	stable            bool
	output            string
}

// conform runs the suite, shows what it finds, and writes the cards.
func (a *App) conform(cmd *cobra.Command, p *proof) error {
	log, err := a.quietLogger(cmd)
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("log-level") {
		p.options.Logger = log
	}
	ctx, caught, release := catchSignals(cmd.Context(), log)
	defer release()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	shown := &progress{to: a.Out, style: a.Style, width: longestCase()}
	if p.output != "text" {
		shown = a.asideProgress()
	}
	p.options.Progress = func(r conform.Result) {
		if shown.result(&r) != nil && len(p.cards) == 0 {
			stop() // nobody reads it
		}
	}
	report, err := a.runSuite(ctx, p, caught)
	if shown.err != nil && (report == nil || len(p.cards) == 0) {
		return fmt.Errorf("write output: %w", shown.err)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return &interruptedError{caught.last}
	case err != nil:
		return p.explain(err)
	}
	return a.finish(report, p, shown)
}

// runSuite runs the suite until it ends, or until a second signal.
func (a *App) runSuite(ctx context.Context, p *proof, caught *signals) (report *conform.Report, err error) {
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		report, err = conform.Run(ctx, p.subject, p.options)
	}()
	select {
	case <-ran:
		return report, err
	case <-caught.again: // what is left is left to the plugins' leashes
		return nil, context.Canceled
	}
}

// finish writes what a run has found.
func (a *App) finish(report *conform.Report, p *proof, shown *progress) error {
	c := card.From(report)
	if p.stable {
		c = c.Stable()
	}
	for _, path := range p.cards {
		if err := c.Write(path); err != nil {
			return err
		}
	}
	var err error
	switch p.output {
	case "json":
		err = writeJSON(a.Out, c)
	case "markdown":
		_, err = a.Out.Write(c.Markdown())
	default:
		if err = shown.err; err == nil {
			_, err = fmt.Fprintf(a.Out, "%s\n", c.Run)
		}
	}
	if err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	failed := &failedError{plugin: report.Plugin.Name}
	for i := range report.Results {
		if report.Results[i].Status == conform.Failed {
			failed.cases = append(failed.cases, report.Results[i].Case)
		}
	}
	if len(failed.cases) > 0 {
		return failed
	}
	return nil
}
