// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of longshore.
package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/cmd/longshore/internal/term"
)

// App is one call of the command line. Standard input and output of a service
// are the process's own.
type App struct {
	Args    []string // without the program
	Out     io.Writer
	Err     io.Writer
	Style   term.Style // of Out
	Live    bool       // Out is a terminal that can be written over
	Environ []string
	Lookup  func(name string) (string, bool) // of environment variables

	logLevel  string
	logFormat string
}

// Standard returns the call that the process was started with.
func Standard() *App {
	kind, _ := os.LookupEnv("TERM")
	return &App{
		Args: os.Args[1:], Out: os.Stdout, Err: os.Stderr,
		Style: term.For(os.Stdout, os.LookupEnv), Live: term.Is(os.Stdout) && kind != "dumb", Environ: os.Environ(), Lookup: os.LookupEnv,
	}
}

// Main runs the call, says on Err what went wrong, and returns the exit status.
func (a *App) Main() int {
	root := a.root()
	root.SetArgs(a.Args)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := root.ExecuteContext(context.Background())
	if err != nil {
		_, _ = fmt.Fprintf(a.Err, "longshore: %v\n", err) // the status says it as well
	}
	return status(err)
}

// root returns the tree of commands.
func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "longshore",
		Short: "Runs messaging services and shows how they settle messages",
		Long: `longshore runs messaging services: transports as plugin processes, handlers as
commands, and a retry policy for each subscription.

` + exitStatuses,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		Version:       thisBuild().String(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			_, err := a.logger(io.Discard)
			return err
		},
	}
	root.PersistentFlags().StringVar(&a.logLevel, "log-level", defaultLogLevel, "least level that is logged: debug, info, warn or error")
	root.PersistentFlags().StringVar(&a.logFormat, "log-format", "text", "form of the log on standard error: text or json")
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version, as longshore version does") // without a letter of its own
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{command: cmd.CommandPath(), err: err}
	})
	root.AddCommand(a.runCommand(), a.explainCommand(), a.pluginCommand(), a.conformCommand(), a.demoCommand(), a.newCommand(), a.versionCommand(), conformHostCommand())
	checkArgs(root)
	return root
}

// checkArgs makes wrong arguments of all commands usage errors.
func checkArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return &usageError{command: cmd.CommandPath(), err: err}
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		checkArgs(c)
	}
}

// defaultLogLevel is what a service logs; commands that print an answer are
// quieter.
const defaultLogLevel = "info"

// quietLogger returns the logger of a command that prints an answer: warnings and
// errors, unless the flags ask for something else.
func (a *App) quietLogger(cmd *cobra.Command) (*slog.Logger, error) {
	if !cmd.Flags().Changed("log-level") {
		a.logLevel = "warn"
	}
	return a.logger(a.Err)
}

// logger returns the logger that the flags ask for.
func (a *App) logger(to io.Writer) (*slog.Logger, error) {
	var level slog.Level
	switch a.logLevel {
	case "debug":
		level = slog.LevelDebug
	case "info":
		level = slog.LevelInfo
	case "warn":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	default:
		return nil, &usageError{"longshore", fmt.Errorf("--log-level cannot be %q: use debug, info, warn or error", a.logLevel)}
	}
	opts := &slog.HandlerOptions{Level: level}
	switch a.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(to, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(to, opts)), nil
	}
	return nil, &usageError{"longshore", fmt.Errorf("--log-format cannot be %q: use text or json", a.logFormat)}
}

// outputFlag adds --output with the forms that a command has; the first one is
// the default.
func outputFlag(cmd *cobra.Command, into *string, forms ...string) {
	list := forms[0]
	for i, f := range forms[1:] {
		if i == len(forms)-2 {
			list += " or " + f
		} else {
			list += ", " + f
		}
	}
	cmd.Flags().StringVarP(into, "output", "o", forms[0], "form of the output: "+list)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		for _, f := range forms {
			if *into == f {
				return nil
			}
		}
		return &usageError{cmd.CommandPath(), fmt.Errorf("--output cannot be %q: use %s", *into, list)}
	}
}
