// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/cmd/longshore/internal/config"
	"github.com/longshore-go/longshore/cmd/longshore/internal/service"
	"github.com/longshore-go/longshore/host"
)

// runCommand runs a service file.
func (a *App) runCommand() *cobra.Command {
	var (
		drain  time.Duration
		stayUp bool
	)
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Runs the service that a file describes",
		Long: `Runs the service that a YAML file describes: endpoints, subscriptions, and for
each subscription where its messages are forwarded to or which command handles
them.

The service ends by itself when all that it reads has ended. SIGINT and SIGTERM
stop it: nothing more is read, what is in work is settled, and copies that wait
for their time are sent. A second signal ends at once.

A command gets the payload on its standard input and in its environment
LONGSHORE_NAME, LONGSHORE_ATTEMPT, LONGSHORE_ENDPOINT, LONGSHORE_SUBSCRIPTION and
LONGSHORE_HEADER_<NAME> for each header. Its exit status decides: 0 ack, 75 retry,
65 drop, 70 dead letter, any other retry.

` + exitStatuses,
		Example: "  producer | longshore run service.yaml | consumer",
		Args:    exactlyOne("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if drain < 0 {
				return &usageError{cmd.CommandPath(), fmt.Errorf("--drain-limit cannot be %v: use 0 for no limit, or more", drain)}
			}
			opts := []host.Option{host.WithDrainLimit(drain)}
			if stayUp {
				opts = append(opts, host.StayUp())
			}
			return a.run(cmd.Context(), args[0], opts)
		},
	}
	durationFlag(cmd, &drain, "drain-limit", 0, "longest time that a stop waits for work and waiting copies; 0: no limit")
	cmd.Flags().BoolVar(&stayUp, "stay-up", false, "keep running when all that is read has ended")
	return cmd
}

// run runs the service until it ends or is ended.
func (a *App) run(ctx context.Context, path string, opts []host.Option) error {
	log, err := a.logger(a.Err)
	if err != nil {
		return err
	}
	f, err := config.Load(path, a.Lookup)
	if err != nil {
		return err
	}
	h, found := service.Build(f, service.Options{Logger: log, Host: opts, Environ: a.Environ})
	if len(found) > 0 {
		return inForm(f, &host.StartError{Findings: found})
	}
	err = host.RunUntilSignal(ctx, h)
	var again *host.SignalError
	if errors.As(err, &again) {
		return &interruptedError{again.Signal}
	}
	return inForm(f, err)
}

// startError is a refused start, in the words of the service file.
type startError struct {
	file *config.File
	err  *host.StartError
}

// inForm puts a refused start into the words of the service file; all other
// errors stay as they are.
func inForm(f *config.File, err error) error {
	var refused *host.StartError
	if errors.As(err, &refused) && len(refused.Findings) > 0 {
		return &startError{file: f, err: refused}
	}
	return err
}

func (e *startError) Error() string {
	text := "the service cannot start"
	for _, fd := range e.err.Findings {
		text += "\n" + service.Describe(e.file, fd)
	}
	return text
}

func (e *startError) Unwrap() error { return e.err }
