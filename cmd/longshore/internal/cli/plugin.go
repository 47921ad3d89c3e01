// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/cmd/longshore/internal/describe"
	"github.com/longshore-go/longshore/internal/process"
)

// pluginCommand groups what can be asked about plugins.
func (a *App) pluginCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Shows which transports are installed and what they can do",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	cmd.AddCommand(a.pluginListCommand(), a.pluginDescribeCommand())
	return cmd
}

// installed is one line of plugin list.
type installed struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Found  string `json:"found"`            // why this folder was searched
	Hidden bool   `json:"hidden,omitempty"` // another file of this name is found first
}

// pluginListCommand lists the plugins that are found.
func (a *App) pluginListCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Lists the transports that are installed",
		Long: `Lists the files longshore-transport-<name> in the folders that are searched:
$LONGSHORE_PLUGIN_DIR, the folder of this program, $XDG_DATA_HOME/longshore/plugins
(~/.local/share/longshore/plugins) and PATH, in this order. None of them is run.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			found := []installed{}
			for _, p := range process.List() {
				found = append(found, installed{Name: p.Name, Path: p.Path, Found: p.Origin, Hidden: p.Hidden})
			}
			return a.list(found, output)
		},
	}
	outputFlag(cmd, &output, "text", "json")
	return cmd
}

// list writes what was found.
func (a *App) list(found []installed, output string) error {
	if output == "json" {
		return writeJSON(a.Out, found)
	}
	if len(found) == 0 {
		_, err := fmt.Fprintln(a.Err, "no transport is installed; put a file longshore-transport-<name> beside this program or into PATH")
		return err
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tPATH\tFOUND BY") // Flush says what went wrong
	for _, p := range found {
		by := p.Found
		if p.Hidden {
			by += " (hidden: the one above is used)"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, p.Path, by)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// endLimit is how long a plugin that was only asked may take to end.
const endLimit = 5 * time.Second

// pluginDescribeCommand asks one plugin what it is.
func (a *App) pluginDescribeCommand() *cobra.Command {
	var output, path string
	cmd := &cobra.Command{
		Use:   "describe NAME",
		Short: "Starts a transport and shows what it can do and which settings it has",
		Args:  exactlyOne("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := a.quietLogger(cmd)
			if err != nil {
				return err
			}
			return a.describe(cmd.Context(), process.Options{Name: args[0], Path: path, Logger: log}, output)
		},
	}
	cmd.Flags().StringVar(&path, "path", "", "the plugin's file, instead of looking for it by name")
	outputFlag(cmd, &output, "text", "json")
	return cmd
}

// describe starts a plugin, asks it, and ends it.
func (a *App) describe(ctx context.Context, o process.Options, output string) error {
	ctx, caught, release := catchSignals(ctx, o.Logger)
	defer release()
	p, err := process.Start(ctx, 1, o)
	if ctx.Err() != nil && p == nil {
		return &interruptedError{caught.last}
	}
	var missing *process.StartError
	if errors.As(err, &missing) && missing.Stage == process.StageLocate && o.Path == "" {
		return fmt.Errorf("%w; longshore plugin list shows what is installed", err)
	}
	if err != nil {
		return err
	}
	d := describe.From(p.Description())
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	if err := p.End(ending); err != nil {
		return fmt.Errorf("end plugin %s: %w", o.Name, err)
	}
	if output == "json" {
		return writeJSON(a.Out, d)
	}
	if err := d.Write(a.Out, a.Style); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
