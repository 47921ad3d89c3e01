// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/cmd/longshore/internal/demo"
)

// defaultPace makes the demo last a few seconds, so that one can watch it.
const defaultPace = 12 * time.Millisecond

// demoCommand shows a service at work.
func (a *App) demoCommand() *cobra.Command {
	var pace time.Duration
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Shows real lines going through real plugins: acked, retried, dropped, dead-lettered and filed",
		Long: `Runs a small service in this process: lines about airports go through the pipe
plugin, a process of its own, to a handler that forwards most of them, retries
some, drops some, and panics on some. A second one appends what it gets to a stream
file, by the file plugin, and the file is read in the end: by a replay, and by a
group that is stopped and started again. Before, it prints what must become of
each outcome; after, a balance that must add up: if it does not, the exit status
is 1.
SIGINT ends the lines early, with a balance of those before it; a second one ends
at once, without.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if pace < 0 {
				return &usageError{cmd.CommandPath(), fmt.Errorf("--pace cannot be %v: use 0 for as fast as it goes, or more", pace)}
			}
			log, err := a.quietLogger(cmd)
			if err != nil {
				return err
			}
			ctx, caught, release := catchSignals(cmd.Context(), log)
			defer release()
			err = demo.Run(ctx, demo.Options{
				Out: a.Out, Style: a.Style, Live: a.Live, Pace: pace, Log: log, Abort: caught.again,
			})
			var wrong *demo.BalanceError
			if ctx.Err() != nil && !errors.As(err, &wrong) {
				return &interruptedError{caught.last}
			}
			return err
		},
	}
	durationFlag(cmd, &pace, "pace", defaultPace, "pause between two lines")
	return cmd
}
